import sys,os,json; sys.path.insert(0,'/work/eval'); import mybench
ctxeval,counter=mybench.load_scoring(); import satchel, dataclasses
kind=sys.argv[1]; corps=sys.argv[2].split(','); b=int(sys.argv[3])
n=0
for corp in corps:
    cl=satchel.open(f"/work/eval/trees/code_semble_whole/{corp}"); q=dataclasses.replace(cl,quick=True); cache={}
    for l in open('/work/eval/data/code_semble/dev.jsonl'):
        t=json.loads(l)
        if t['corpus']!=corp: continue
        c=q.build(t['query'],token_budget=b)
        class X: pass
        for s in c.sources:
            x=X(); x.sources=[s]; x.tokens=0
            a=mybench.analyse(cl,x,counter,set(),cache)
            if a[kind]:
                n+=1
                tl=s.text.split('\n'); print('---',corp,s.file,s.name,s.line,s.end_line,'|',t['query'][:40]); print('\n'.join(tl[:4])); print('   ....'); print('\n'.join(tl[-3:]))
                if n>int(sys.argv[4]): sys.exit()
