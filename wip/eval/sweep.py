"""sweep.py SET SUFFIX EVERY BUDGETS < json lines of {const: value}"""
import sys,os,json,collections
HERE=os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0,HERE)
import mybench, multiprocessing as mp
def work(a):
    set_,corp,tasks,suffix,budgets,settings=a
    try:
        ctxeval,counter=mybench.load_scoring(); import satchel, dataclasses
        from satchel.assembly import unit_packing as U, units as V
        d=os.path.join(HERE,"trees",set_+suffix,corp); cp=mybench.corpus(ctxeval,d); cl=satchel.open(d); cl.index(); q=dataclasses.replace(cl,quick=True)
        base={k:getattr(U,k) for s in settings for k in s if hasattr(U,k)}
        out=[]
        for s in settings:
            for k,v in base.items(): setattr(U,k,v)
            for k,v in s.items(): setattr(V if hasattr(V,k) else U,k,v)
            rows=[]; cache={}
            for t in tasks:
                gold={g["path"] for g in t.get("gold_files",[])}
                row={}
                for b in budgets:
                    c=q.build(t["query"],token_budget=b); sc=ctxeval.score_context(t,c.text,cp,set_.startswith("code")); x=mybench.analyse(cl,c,counter,gold,cache)
                    row[b]=(sc["cover"],c.tokens,x["goldtok"]/max(1,c.tokens),x["n"],x["frame"]/b,x["body"],x["unmarked"],x["frag"]>0,sc.get("evid_soft"))
                rows.append(row)
            out.append(rows)
        cl.close(); return out
    except Exception:
        import traceback; traceback.print_exc(); return None
def main():
    set_,suffix,every,bud=sys.argv[1:5]; suffix="" if suffix=="-" else suffix; budgets=[int(x) for x in bud.split(",")]
    settings=[json.loads(l) for l in sys.stdin if l.strip()]
    by=collections.defaultdict(list)
    for l in open(f"{HERE}/data/{set_}/dev.jsonl"):
        t=json.loads(l); by[t["corpus"]].append(t)
    jobs=[(set_,c,ts[::int(every)],suffix,budgets,settings) for c,ts in by.items()]
    with mp.get_context("spawn").Pool(2) as p: res=[r for r in p.imap_unordered(work,jobs) if r]
    m=mybench.mean
    for i,s in enumerate(settings):
        rows=[r for x in res for r in x[i]]
        print(s,len(rows))
        for b in budgets:
            g=[r[b] for r in rows]; N=sum(x[3] for x in g) or 1
            print("  ",b,f"cover {m(x[0] for x in g):.4f} tokens {m(x[1] for x in g):.0f} gold {m(x[2] for x in g):.3f} pieces {m(x[3] for x in g):.1f} frame {100*m(x[4] for x in g):.1f} body {100*sum(x[5] for x in g)/N:.1f} unm {100*sum(x[6] for x in g)/N:.1f} frag {100*m(x[7] for x in g):.1f}", f"soft {m(x[8] for x in g):.3f}" if g[0][8] is not None else "")
if __name__=="__main__":
    if os.environ.get("PYTHONHASHSEED")!="0":
        os.environ["PYTHONHASHSEED"]="0"; os.execv(sys.executable,[sys.executable]+sys.argv)
    main()
