"""mybench.py SET OUT [--corpora a,b] [--suffix _whole] [--every N] [--symbols N] [--jobs 2]: in-process quality of what is shown."""
import sys, os, json, argparse, collections, re, time, pickle, hashlib
HERE=os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0,HERE)
sys.path.insert(0, os.environ.get("SATCHEL_SRC","/work/main/src"))
import multiprocessing as mp
sys.modules.setdefault("psutil", type(sys)("psutil"))
os.environ.setdefault("SATCHEL_QUIET","1")
class T:
    pass
def load_scoring():
    import types
    tok=types.ModuleType("tokens")
    import toktok
    enc=None
    from satchel.tokens.registry import counter_for
    c=counter_for("gpt-4o"); tok.count=c.count
    sys.modules["tokens"]=tok
    import ctxeval
    return ctxeval, c
CORP=os.path.join(HERE,"corpcache")
def corpus(ctxeval,d):
    os.makedirs(CORP,exist_ok=True)
    f=os.path.join(CORP,hashlib.sha1(d.encode()).hexdigest()[:12]+".pkl")
    # 3-line hashes are process-specific (PYTHONHASHSEED=0 is set)
    if os.path.exists(f):
        c=ctxeval.Corpus.__new__(ctxeval.Corpus); c.__dict__=pickle.load(open(f,"rb")); return c
    c=ctxeval.Corpus(d); pickle.dump(c.__dict__,open(f,"wb")); return c
MARK=re.compile(r"^\s*(⋮|…|\[truncated|\[…\])")
def analyse(cl, ctx, counter, gold, blockcache):
    eng=cl.engine
    from satchel.models.search import Filters
    n=body=unmarked=frag=0; goldtok=shown_tok=0
    for s in ctx.sources:
        t=s.text; k=counter.count(t); shown_tok+=k
        if s.file in gold: goldtok+=k
        n+=1
        if not s.file or not s.line: continue
        if s.file not in blockcache:
            blockcache[s.file]=(eng.store.blocks_of(s.file,Filters()), eng.store.text_of(s.file,Filters()) or "")
        blocks,text=blockcache[s.file]
        named=[b for b in blocks if b.qualified_name]
        lines=text.split("\n"); total=len(lines)-(not lines[-1])
        tl=t.split("\n")
        marked_start=bool(MARK.match(tl[0])); marked_end=bool(MARK.match(tl[-1]))
        last=s.end_line or s.line
        # what the first shown line belongs to
        first=s.line
        inside=[b for b in named if b.start_line<first<=b.end_line]
        starts=any(b.start_line==first for b in named)
        code=any(b.type not in("section","document","page") for b in named)
        if inside and not starts and code: body+=1
        inner=[b for b in named if b.start_line<=first and b.end_line>=first]
        inner=max(inner,key=lambda b:(b.start_line,-b.end_line),default=None)
        cut=False
        if inner and not starts and inside and not marked_start and not any(MARK.match(x) for x in tl[:1]): cut=True
        # end: some block that contains the last line and began within the piece or before, not finished
        rest=lambda a,b: any(l.strip() for l in lines[a:b])
        open_=[b for b in named if b.start_line>=first and b.start_line<=last<b.end_line and rest(last,b.end_line)]
        if open_ and not marked_end: cut=True
        if inside and not starts:
            b=max(inside,key=lambda b:(b.start_line,-b.end_line))
            if last<b.end_line and rest(last,b.end_line) and not marked_end: cut=True
        if not named and (rest(0,first-1) or rest(last,total)) and not any(MARK.match(x) for x in tl): cut=True
        unmarked+=cut
        own=[x for x in tl if x.strip() and not MARK.match(x)]
        if len(own)<=1 and counter.count(t)<12: frag+=1
    return dict(n=n,body=body,unmarked=unmarked,frag=frag,goldtok=goldtok,shown=shown_tok,frame=ctx.tokens-shown_tok)
def one(args):
    try: return one_(args)
    except Exception:
        import traceback; traceback.print_exc(); return args[1],[],[]
def one_(args):
    set_,corp,tasks,suffix,budgets,symbols,log=args
    ctxeval,counter=load_scoring()
    import satchel
    from satchel.models.search import Filters
    d=os.path.join(HERE,"trees",set_+suffix,corp)
    cp=corpus(ctxeval,d) if tasks else None
    cl=satchel.open(d); cl.index()
    rows=[]; cache={}
    lf=open(log+"."+corp,"w") if log else None
    code=set_.startswith("code")
    import dataclasses
    quick=dataclasses.replace(cl,quick=True) if hasattr(cl,"quick") else cl
    for t in tasks:
        gold={g["path"] for g in t.get("gold_files",[])}
        h=quick.search(t["query"],top_k=50).hits
        ranked=[(x.path,x.start_line,x.end_line) for x in h]
        r=ctxeval.score_ranking(t,ranked,cp,budgets,code); r.pop("unit_recall",None)
        row={"id":t["id"],"rank":r,"b":{}}
        for b in budgets:
            t0=time.process_time(); c=quick.build(t["query"],token_budget=b); dt=time.process_time()-t0
            s=ctxeval.score_context(t,c.text,cp,code)
            a=analyse(cl,c,counter,gold,cache); a["cover"]=s["cover"]; a["soft"]=s.get("evid_soft"); a["tokens"]=c.tokens; a["ms"]=dt*1000
            if t.get("gold_spans"):
                sh=collections.defaultdict(set)
                for s_ in c.sources:
                    if s_.file and s_.line:
                        L=cp.files.get(s_.file,"").split("\n"); sh[s_.file]|=ctxeval.align(s_.text,L,s_.line,s_.end_line or len(L))
                a.update(ctxeval.score_lines(t,sh))
            row["b"][b]=a
            if lf: lf.write(json.dumps({"q":t["query"],"b":b,"gold":sorted(gold),"cover":a["cover"],"text":c.text})+"\n")
        rows.append(row)
    sym=[]
    if symbols:
        import random
        rnd=random.Random(corp)
        eng=cl.engine; cand=collections.defaultdict(list)
        files=sorted(eng.store.files()); rnd.shuffle(files)
        from satchel.models.files import kind_of
        for f in files[:400]:
            k=kind_of(f)
            if k.test or k.example or k.docs or k.prose or k.vendor: continue
            for b in eng.store.blocks_of(f,Filters()):
                if b.qualified_name and b.type in("class","function","struct","interface","trait","enum","type","method","macro") and len(b.title)>=4 and b.title.isidentifier():
                    cand[b.title].append(b)
        allnames=collections.Counter()
        uniq=[v[0] for k,v in cand.items() if len(v)==1]
        # top-level kinds first half
        tops=[b for b in uniq if b.type!="method"]; meth=[b for b in uniq if b.type=="method"]
        rnd.shuffle(tops); rnd.shuffle(meth)
        pick=tops[:symbols-symbols//4]+meth[:symbols//4]
        for b in pick:
            text=(eng.store.text_of(b.source_path,Filters()) or "").split("\n")
            body=text[b.start_line-1:b.end_line]
            sig=b.title
            deflines=[i for i,l in enumerate(body) if re.search(r"\b"+re.escape(sig)+r"\b",l) and not re.match(r"\s*(//|#(?!\[)|\*|/\*|--|@)",l)]
            if not deflines: continue
            defline=body[deflines[0]].strip(); whole=counter.count("\n".join(body))
            e={"name":b.title,"path":b.source_path,"line":b.start_line+deflines[0],"tokens":whole,"type":b.type}
            for bb in (1000,2000):
                c=quick.build(b.title,token_budget=bb)
                sh=set()
                for s in c.sources:
                    if s.file==b.source_path:
                        L=text; sh|=ctxeval.align(s.text,L,s.line,s.end_line or len(L))
                need={i for i in range(b.start_line,b.end_line+1) if text[i-1].strip()}
                e[f"def{bb}"]=(b.start_line+deflines[0]) in sh; e[f"whole{bb}"]=need<=sh
                e[f"first{bb}"]=bool(c.sources) and c.sources[0].file==b.source_path
            sym.append(e)
    cl.close()
    return corp,rows,sym
def main():
    p=argparse.ArgumentParser(); p.add_argument("set"); p.add_argument("out"); p.add_argument("--corpora"); p.add_argument("--suffix",default=""); p.add_argument("--every",type=int,default=1); p.add_argument("--symbols",type=int,default=0); p.add_argument("--jobs",type=int,default=2); p.add_argument("--budgets",default="1000,2000,4000,8000"); p.add_argument("--log"); p.add_argument("--noq",action="store_true"); p.add_argument("--list")
    a=p.parse_args(); budgets=[int(x) for x in a.budgets.split(",")]
    tasks=[json.loads(l) for l in open(f"{HERE}/data/{a.set}/dev.jsonl")]
    keep=set(a.corpora.split(",")) if a.corpora else (set(open(a.list).read().split()) if a.list else None)
    by=collections.defaultdict(list)
    for i,t in enumerate(tasks):
        if keep and t["corpus"] not in keep: continue
        by[t["corpus"]].append(t)
    jobs=[(a.set,c,[] if a.noq else ts[::a.every],a.suffix,budgets,a.symbols,a.log) for c,ts in by.items() if os.path.isdir(f"{HERE}/trees/{a.set+a.suffix}/{c}")]
    jobs.sort(key=lambda j:-len(j[2]))
    with mp.get_context("spawn").Pool(a.jobs) as pool:
        res=[]
        for r in pool.imap_unordered(one,jobs): res.append(r); print(".",end="",file=sys.stderr,flush=True)
    print(file=sys.stderr)
    json.dump(res,open(a.out,"w"))
    report(res,budgets)
def mean(x):
    x=[v for v in x if v is not None]; return sum(x)/len(x) if x else float("nan")
def report(res,budgets):
    rows=[r for _,rs,_ in res for r in rs]
    if rows:
        print("questions",len(rows),"ndcg",round(mean(r["rank"].get("ndcg10_unit") for r in rows),4),"recall@5",round(mean(r["rank"].get("recall@5") for r in rows),4),"recall@10",round(mean(r["rank"].get("recall@10") for r in rows),4))
        print("budget cover tokens goldshare pieces body% unmarked% frag% frame% ms")
        for b in budgets:
            g=[r["b"][b] if b in r["b"] else r["b"][str(b)] for r in rows]
            N=sum(x["n"] for x in g) or 1
            print(b,f"{mean(x['cover'] for x in g):.4f}",f"{mean(x['soft'] for x in g):.3f}",int(mean(x['tokens'] for x in g)),f"{mean(x['goldtok']/max(1,x['tokens']) for x in g):.3f}",f"{N/len(g):.1f}",f"{100*sum(x['body'] for x in g)/N:.1f}",f"{100*sum(x['unmarked'] for x in g)/N:.1f}",f"{100*mean(x['frag']>0 for x in g):.1f}",f"{100*mean(x['frame']/b for x in g):.1f}",f"{mean(x['ms'] for x in g):.1f}", *( [f"lrec {mean(x.get('l_rec') for x in g):.3f} lpre {mean(x.get('l_pre') for x in g):.3f} frec {mean(x.get('f_rec') for x in g):.3f}"] if 'f_rec' in g[0] else []))
    sy=[s for _,_,ss in res for s in ss]
    if sy:
        print("symbols",len(sy),*[f"def@{b} {100*mean(s[f'def{b}'] for s in sy):.1f} whole800@{b} {100*mean(s[f'whole{b}'] for s in sy if s['tokens']<=800):.1f} firstfile@{b} {100*mean(s[f'first{b}'] for s in sy):.1f}" for b in (1000,2000)])
if __name__=="__main__":
    if os.environ.get("PYTHONHASHSEED")!="0":
        os.environ["PYTHONHASHSEED"]="0"; os.execv(sys.executable,[sys.executable]+sys.argv)
    if sys.argv[1]=="report": report(json.load(open(sys.argv[2])),[1000,2000,4000,8000])
    else: main()
