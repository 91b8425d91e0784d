"""Makes numa_golden.txt: made-up hosts, and what torch's own torch/numa/binding.py answers on them.

Run with a python that has torch 2.13: python test/data/numa_golden.py > test/data/numa_golden.txt"""
import builtins
import io
import os
import random

import torch
import torch.numa.binding as b

files={}
real_open=builtins.open; real_listdir=os.listdir
def fopen(p,*a,**k):
    if isinstance(p,str) and p.startswith("/sys/"):
        if p in files: return io.StringIO(files[p])
        raise FileNotFoundError(p)
    return real_open(p,*a,**k)
def flist(p="."):
    if isinstance(p,str) and p.startswith("/sys/"):
        r=sorted({f[len(p)+1:].split("/")[0] for f in files if f.startswith(p+"/")})
        if not r: raise FileNotFoundError(p)
        return r
    return real_listdir(p)
builtins.open=fopen; os.listdir=flist
b.shutil.which=lambda x:"/usr/bin/"+x
class Props: pass
gpun=[]
def props(i):
    p=Props(); p.pci_domain_id=0; p.pci_bus_id=0x10+i; p.pci_device_id=0; return p
torch.cuda.get_device_properties=props
b._get_gpu_count=lambda: len(gpun)
allowed=set()
b._get_allowed_cpu_indices_for_current_thread=lambda: set(allowed)
R=b._get_ranges_str_from_ints
def topo(nodes, smt, l3, gpus, package, allow=None, possible=None, high=False, nodel3=False):
    """nodes: cores per node; smt: threads a core; l3: cores per L3; gpus: list numa_node; package: per node
       high: siblings at cpu + total cores (Intel numbering) else adjacent"""
    files.clear(); gpun[:]=gpus
    total=sum(nodes); cpu_core={}; node_cpus=[]; core=0
    for n,c in enumerate(nodes):
        cpus=[]
        for k in range(c):
            sib=[core+ t*total for t in range(smt)] if high else [core*smt+t for t in range(smt)]
            cpus+=sib
            for s in sib: cpu_core[s]=(n,k,sib)
            core+=1
        node_cpus.append(cpus)
    for n,c in enumerate(node_cpus):
        files[f"/sys/devices/system/node/node{n}/cpulist"]=R(c)+"\n"
    files["/sys/devices/system/node/possible"]=(possible or R(range(len(nodes))))+"\n"
    for s,(n,k,sib) in cpu_core.items():
        d=f"/sys/devices/system/cpu/cpu{s}"
        files[d+"/topology/thread_siblings_list"]=R(sib)+"\n"
        files[d+"/topology/physical_package_id"]=f"{package[n]}\n"
        grp=[x for x,(n2,k2,_) in cpu_core.items() if n2==n and k2//l3==k//l3]
        for idx,(ty,lv,sh) in enumerate([("Data",1,sib),("Instruction",1,sib),("Unified",2,sib)]+([] if nodel3 else [("Unified",3,grp)])):
            files[d+f"/cache/index{idx}/type"]=ty+"\n"
            files[d+f"/cache/index{idx}/level"]=f"{lv}\n"
            files[d+f"/cache/index{idx}/shared_cpu_list"]=R(sh)+"\n"
    for i,nn in enumerate(gpus):
        files[f"/sys/bus/pci/devices/0000:{0x10+i:02x}:00.0/numa_node"]=f"{nn}\n"
    allowed.clear(); allowed.update(cpu_core.keys() if allow is None else allow)
cases=[
 ("one node, smt, gpu node -1", dict(nodes=[4],smt=2,l3=4,gpus=[-1,-1],package=[0])),
 ("two sockets, 8 gpus", dict(nodes=[8,8],smt=2,l3=8,gpus=[0,0,0,0,1,1,1,1],package=[0,1],high=True)),
 ("uneven cores", dict(nodes=[7,7],smt=2,l3=4,gpus=[1,0,1,0,1],package=[0,1],high=True)),
 ("four nodes on two sockets", dict(nodes=[4,4,4,4],smt=1,l3=2,gpus=[3,3,1,1,0,2],package=[0,0,1,1])),
 ("small L3 groups, more gpus than groups", dict(nodes=[6],smt=1,l3=4,gpus=[0,0,0,0,0],package=[0])),
 ("affinity cuts cores and threads", dict(nodes=[8,8],smt=2,l3=4,gpus=[0,0,1],package=[0,1],high=True,allow=[1,2,3,5,6,18,21,22,8,9,24,30])),
 ("too few cores", dict(nodes=[2],smt=2,l3=2,gpus=[0,0,0],package=[0])),
 ("no usable cpu on the gpu's node", dict(nodes=[2,2],smt=1,l3=2,gpus=[1],package=[0,1],allow=[0,1])),
 ("no L3: L2 is the last cache", dict(nodes=[4],smt=2,l3=4,gpus=[0,0,0],package=[0],nodel3=True)),
 ("packages numbered oddly", dict(nodes=[2,2,2],smt=2,l3=1,gpus=[2,1,0],package=[1,-1,1],high=True)),
 ("equal-sized caches by lower cpu", dict(nodes=[8],smt=1,l3=2,gpus=[0,0,0,0,0,0],package=[0],allow=[0,2,3,4,5,7])),
]
rnd=random.Random(7)
for i in range(14):
    nn=rnd.choice([1,2,2,4]); nodes=[rnd.randint(1,9) for _ in range(nn)]; smt=rnd.choice([1,2,2,4]); total=sum(nodes)*smt
    cases.append((f"random {i}",dict(nodes=nodes,smt=smt,l3=rnd.randint(1,5),gpus=[rnd.randrange(nn) for _ in range(rnd.randint(1,6))],
       package=[k//2 if nn>2 else rnd.choice([0,k]) for k in range(nn)],high=rnd.random()<.5,allow=sorted(rnd.sample(range(total),rnd.randint(max(1,total*2//3),total))))))
modes=["node","socket","exclusive","core-complex"]
out=[]
print("# T name: a made-up host.  N node: its CPUs.  C cpu: siblings, package, then type:level:sharing CPUs of each cache.")
print("# A: CPUs that may be used.  G: NUMA node of each GPU.  R gpu mode: what torch/numa/binding.py answers, - where it")
print("# raises.  Made by numa_golden.py.")
SYS = "/sys/devices/system/"
for name, kw in cases:
    topo(**kw)
    print("T", name)
    for p in sorted(files):
        if p.endswith("/cpulist"):
            print("N", p.split("/")[-2][4:], files[p].strip())
    cpus = sorted(int(p.split("/")[5][3:]) for p in files if p.endswith("/thread_siblings_list"))
    for c in cpus:
        d = SYS + f"cpu/cpu{c}/"
        caches = []
        for i in range(9):
            x = d + f"cache/index{i}/"
            if x + "type" in files:
                caches.append(":".join(files[x + k].strip() for k in ("type", "level", "shared_cpu_list")))
        print("C", c, files[d + "topology/thread_siblings_list"].strip(),
              files[d + "topology/physical_package_id"].strip(), *caches)
    print("A", R(allowed))
    print("G", *gpun)
    for g in range(len(gpun)):
        for m in ("node", "socket", "exclusive", "core-complex"):
            if m == "socket" and not all(set(b._get_set_of_int_from_ranges_str(t)) & allowed
                                          for f, t in files.items() if f.endswith("/cpulist")):
                continue  # torch raises if any node has no usable CPU; elrun passes over such a node
            try:
                r = R(b._get_validated_logical_cpus_to_bind_to(
                    gpu_index=g, numa_options=b.NumaOptions(affinity_mode=b.AffinityMode(m))))
            except Exception:
                r = "-"
            print("R", g, m, r)
