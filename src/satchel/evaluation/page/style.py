"""How the report looks: on light and dark screens, small and large, and on paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light;--paper:#f6f7f9;--sheet:#fff;--line:#dde2e7;--ink:#1f2328;--faint:#59636e;--accent:#0067a8;
--good:#1a6e42;--good-soft:#e3f3e9;--bad:#a3271c;--bad-soft:#fbe9e7;--soft:#eef1f4}
@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--paper:#07090c;--sheet:#0d1117;--line:#262d36;
--ink:#e6edf3;--faint:#9aa4af;--accent:#5cb3f0;--good:#6fd39b;--good-soft:#12301f;--bad:#ff9d92;--bad-soft:#3b1a17;
--soft:#1a2028}}
*{box-sizing:border-box}
html{font:16px/1.5 system-ui,sans-serif;background:var(--paper);color:var(--ink);-webkit-text-size-adjust:100%}
body{max-width:70rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1,h2,h3,p,ul,dl,dd,figure{margin:0;padding:0}
h1{font-size:1.75rem;line-height:1.25;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.5rem 0 .75rem}
h3{font-size:1rem;margin:1.25rem 0 .5rem}
p,li{max-width:48rem}
p+p{margin-top:.5rem}
ul{list-style:none}
bdi,.query,dd{overflow-wrap:anywhere}
.faint{color:var(--faint);font-size:.875rem}
.lead{font-size:1.1rem;margin-top:.75rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(10.5rem,1fr));gap:.75rem;margin-top:1.25rem}
.tiles+.tiles{margin-top:.75rem}
.tile,figure,.case,.scroll,dl{background:var(--sheet);border:1px solid var(--line);border-radius:8px}
.tile{padding:.75rem 1rem}
.tile .name,.tile .note{color:var(--faint);font-size:.8125rem;line-height:1.35}
.tile .value{font-size:1.6rem;font-weight:650;line-height:1.3;font-variant-numeric:tabular-nums}
.value small{font-size:.9rem;font-weight:500}
.tile .note{font-variant-numeric:tabular-nums}
.tile.bad .value{color:var(--bad)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:.75rem;align-items:stretch}
figure{padding:.25rem .25rem .75rem;break-inside:avoid}
figure svg{display:block;width:100%;height:auto;max-width:36rem;margin:0 auto}
@media(min-width:56rem){.beside{grid-column:1/-1;display:grid;grid-template-columns:minmax(0,36rem) 1fr;gap:1rem;
align-items:center}
.beside figcaption{font-size:1rem;padding-inline-end:2rem}}
figcaption{padding:0 1rem;font-size:.875rem;color:var(--faint)}
.scroll{overflow-x:auto;break-inside:avoid}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.9375rem}
.narrow{max-width:34rem}
p+.scroll,p+.cases,dl+p{margin-top:.6rem}
th,td{padding:.45rem .75rem;text-align:end;white-space:nowrap;border-top:1px solid var(--line);vertical-align:baseline}
thead th{color:var(--faint);font-size:.8125rem;font-weight:500;border-top:0;white-space:normal;min-width:5.5rem}
th:first-child{text-align:start;font-weight:500;padding-inline-start:1rem;white-space:normal;min-width:8rem;
max-width:20rem;overflow-wrap:anywhere;position:sticky;inset-inline-start:0;background:var(--sheet)}
td:last-child,th:last-child{padding-inline-end:1rem}
td small{color:var(--faint)}
.verdict,.chip{display:inline-block;border-radius:4px;padding:0 .45rem;background:var(--soft);font-size:.8125rem;
white-space:nowrap;font-variant-numeric:tabular-nums}
.better{background:var(--good-soft);color:var(--good)}
.worse{background:var(--bad-soft);color:var(--bad)}
.cases{display:grid;gap:.6rem}
.case{padding:.7rem 1rem;max-width:none;break-inside:avoid}
.case .query{font-weight:550;max-width:none}
.case .chips{display:flex;flex-wrap:wrap;gap:.35rem;margin:.35rem 0}
.case ul{font-size:.875rem}
.case li{max-width:none;overflow-wrap:anywhere}
.case code{font:.8125rem/1.5 ui-monospace,monospace}
.error{color:var(--bad)}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:.75rem;align-items:start}
details{margin-top:.6rem}
summary{cursor:pointer;color:var(--accent);padding:.35rem 0}
dl{display:grid;grid-template-columns:minmax(8rem,max-content) 1fr;gap:.3rem 1.25rem;padding:1rem;font-size:.9375rem}
dt{color:var(--faint)}
@media(max-width:36rem){body{padding:1.25rem .75rem 3rem}h1{font-size:1.4rem}.tiles{grid-template-columns:1fr 1fr}
.tile{padding:.6rem .75rem}.tile .value{font-size:1.35rem}dl{grid-template-columns:1fr;gap:0}
th:first-child{min-width:7.5rem;max-width:8rem}dd{margin-bottom:.5rem}}
@media print{:root{--paper:#fff}html{font-size:11px}body{max-width:none;padding:0}
h2,h3,h2+p,h3+p{break-after:avoid}th:first-child{position:static;background:none}
.scroll{overflow:visible}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
