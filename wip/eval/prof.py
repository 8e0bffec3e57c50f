import sys,json,dataclasses,time,cProfile,pstats
sys.path.insert(0,__import__('os').environ.get("SATCHEL_SRC","/work/main/src"))
import satchel
cl=satchel.open("/work/eval/trees/code_semble_whole/"+sys.argv[1]); q=dataclasses.replace(cl,quick=True)
qs=[json.loads(l)["query"] for l in open('/work/eval/data/code_semble/dev.jsonl') if json.loads(l)['corpus']==sys.argv[1]]
B=int(sys.argv[2])
for x in qs[:3]: q.build(x,token_budget=B)
t0=time.process_time()
for x in qs: q.search(x,top_k=20)
t1=time.process_time()
pr=cProfile.Profile()
if len(sys.argv)>3: pr.enable()
for x in qs: q.build(x,token_budget=B)
pr.disable()
t2=time.process_time()
print("search ms",(t1-t0)/len(qs)*1000,"build (cached rank) ms",(t2-t1)/len(qs)*1000)
if len(sys.argv)>3: pstats.Stats(pr).sort_stats("tottime").print_stats(28)
