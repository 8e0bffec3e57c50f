import sys,os,json,collections; sys.path.insert(0,'/work/eval'); import mybench
ctxeval,counter=mybench.load_scoring(); import satchel, dataclasses
B=int(sys.argv[1]); stat=collections.Counter()
for corp in sys.argv[2].split(','):
    d=f"/work/eval/trees/code_semble_whole/{corp}"
    cl=satchel.open(d); q=dataclasses.replace(cl,quick=True); cp=mybench.corpus(ctxeval,d)
    base={}
    for l in open(f'out/base_whole.{corp}'):
        x=json.loads(l)
        if x['b']==B: base[x['q']]=x
    for l in open('/work/eval/data/code_semble/dev.jsonl'):
        t=json.loads(l)
        if t['corpus']!=corp: continue
        c=q.build(t['query'],token_budget=B); s=ctxeval.score_context(t,c.text,cp,True)['cover']
        if s<base[t['query']]['cover']:
            hits=q.search(t['query'],top_k=30).hits
            fl=list(dict.fromkeys(h.path for h in hits)); rel={}
            for h in hits: rel.setdefault(h.path,h.relevance)
            shown={x.file for x in c.sources}
            print('---',corp,t['query'],'base',base[t['query']]['cover'],'new',s,'tokens',c.tokens)
            for g in t['gold_files']:
                p=g['path']; kind='shown' if p in shown else 'absent'
                print('    gold',p,kind,'rank',fl.index(p)+1 if p in fl else None,'p',round(rel.get(p,0),3)); stat[kind]+=1
            for x in c.sources: print('      ',x.number,x.file,x.name,x.line,x.end_line,round(rel.get(x.file,0),3),counter.count(x.text))
print(stat)
