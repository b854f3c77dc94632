//! A product to measure: the kernel description as the compiler makes it, and what it must compute.

use std::sync::Arc;

use meganeura_shaders::dim::{Dim, Env, Symbols};
use meganeura_shaders::generate::{Form, Texts, Unsupported, dispatches_as, variants};
use meganeura_shaders::kernel::{Contract, Kernel, Spec, Term};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{DType, Instr, Leaf, Linker, Prog, Reg};
use meganeura_shaders::schedule::{Binding, Condition, Dispatch, Member, Operand, Place, Word};

/// What is fused into a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum With {
    /// Nothing.
    Nothing,
    /// A bias and silu behind it.
    Epilogue,
    /// RmsNorm of the left side, its statistic gathered while the product runs.
    RowScale,
    /// RmsNorm of the left side, by a pass of its own over the rows.
    Prologue,
}

/// All of them, with the names of their columns.
pub const WITH: [(With, &str); 4] = [
    (With::Nothing, "plain"),
    (With::Epilogue, "epilogue"),
    (With::RowScale, "row scale"),
    (With::Prologue, "prologue"),
];

/// C[m, n] = A[m, k] · B, B stored [n, k] or [k, n].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    pub m: u64,
    pub n: u64,
    pub k: u64,
    /// B is stored [n, k].
    pub along_k: bool,
    pub with: With,
}

/// The number of a buffer: the left side, the right side, bias or gain, the result.
pub const BUFFERS: usize = 4;
const EPS: f64 = 1e-5;

/// One dispatch with everything known but memory.
pub struct Made {
    pub text: String,
    /// The buffer of each binding.
    pub bindings: Vec<usize>,
    pub words: Vec<u32>,
    pub groups: u64,
}

/// The value of element `index` of buffer `buffer`: between -1 and 1, with a long period.
pub fn value(buffer: usize, index: u64) -> f32 {
    let x = (index % 1_048_573) as u32;
    let mixed = x.wrapping_mul(0x9e37_79b9)
        ^ (x >> 7).wrapping_mul(0x85eb_ca6b)
        ^ (buffer as u32 + 1).wrapping_mul(0xc2b2_ae35);
    (mixed >> 8) as f32 / 8_388_608.0 - 1.0
}

fn program(seeds: &[Leaf], build: impl FnOnce(&mut Linker, &[Reg]) -> Reg) -> Prog {
    let mut link = Linker::default();
    let registers: Vec<Reg> = seeds.iter().map(|leaf| link.leaf(*leaf)).collect();
    let root = build(&mut link, &registers);
    link.finish(&[root], seeds).0.remove(0)
}

fn scale(l: &mut Linker, x: Reg, k: u64) -> Reg {
    let square = l.mul(x, x);
    let sum = l.push(Instr::RowSum(square));
    let size = l.push(Instr::Extent(Dim::from(k as i64)));
    let mean = l.bin(Bin::Div, sum, size);
    let eps = l.constant(EPS);
    let inside = l.bin(Bin::Add, mean, eps);
    l.un(Un::Rsqrt, inside)
}

impl Product {
    fn contract(&self) -> Option<Contract> {
        let spec = Spec::parse(if self.along_k { "mk,nk->mn" } else { "mk,kn->mn" })?;
        let plain = || Term { spec: spec.clone(), a: Prog::identity(), b: Prog::identity(), stat: None };
        let two = [Leaf::Arg(0), Leaf::Arg(1)];
        let k = self.k;
        Some(match self.with {
            With::Nothing => Contract::plain(spec),
            With::Epilogue => Contract {
                terms: vec![plain()],
                epi: program(&[Leaf::Acc(0), Leaf::Arg(0)], |l, x| {
                    let biased = l.bin(Bin::Add, x[0], x[1]);
                    let gate = l.un(Un::Sigmoid, biased);
                    l.mul(biased, gate)
                }),
            },
            With::RowScale => Contract {
                terms: vec![Term {
                    a: program(&two, |l, x| l.mul(x[0], x[1])),
                    stat: Some(program(&two, |l, x| scale(l, x[0], k))),
                    ..plain()
                }],
                epi: program(&[Leaf::Acc(0), Leaf::Stat(0)], |l, x| l.mul(x[0], x[1])),
            },
            With::Prologue => Contract {
                terms: vec![Term {
                    a: program(&two, |l, x| {
                        let scale = scale(l, x[0], k);
                        let scaled = l.mul(x[0], scale);
                        l.mul(scaled, x[1])
                    }),
                    ..plain()
                }],
                epi: Prog::identity(),
            },
        })
    }

    /// Elements of each buffer.
    pub fn elements(&self) -> [u64; BUFFERS] {
        [self.m * self.k, self.n * self.k, self.n.max(self.k), self.m * self.n]
    }

    fn member(&self) -> Option<Member> {
        let size = |sizes: &[u64]| sizes.iter().map(|size| Dim::from(*size as i64)).collect::<Vec<_>>();
        let place = |buffer| Place { buffer, offset: Dim::from(0), slots: vec![], lead: vec![] };
        let a = (0, size(&[self.m, self.k]));
        let b = (1, size(&if self.along_k { [self.n, self.k] } else { [self.k, self.n] }));
        let args = match self.with {
            With::Nothing => vec![a, b],
            With::Epilogue => vec![a, b, (2, size(&[self.n]))],
            With::RowScale | With::Prologue => vec![a, (2, size(&[self.k])), b],
        };
        let kernel = Kernel::Contract(Arc::new(self.contract()?));
        let shape = kernel.shape(&args.iter().map(|(_, shape)| shape).collect::<Vec<_>>())?;
        let reads =
            args.into_iter().map(|(buffer, shape)| (Operand::Memory(place(buffer)), shape, DType::F32)).collect();
        Some(Member { kernel, reads, write: place(3), shape, dtype: DType::F32 })
    }

    /// What a device with so many bytes of workgroup memory runs: the table's choice, or this form; none where it
    /// takes more memory.
    pub fn make(&self, form: Option<Form>, memory: u32) -> Result<Option<Made>, Unsupported> {
        let Some(member) = self.member() else { return Ok(None) };
        let members = [member];
        let (mut symbols, mut texts) = (Symbols::default(), Texts::default());
        let dispatches = match form {
            Some(form) => {
                let (dispatches, bytes) = dispatches_as(&members, form, &mut symbols, &mut texts)?;
                if bytes > memory { vec![] } else { dispatches }
            }
            None => {
                let all = variants(&members, &mut symbols, &mut texts)?;
                let fits = |condition: &Condition| match condition {
                    Condition::WorkgroupMemory(bytes) => *bytes <= memory,
                    // Sizes are numbers here: nothing else is left to ask.
                    Condition::Always => true,
                    Condition::AtMost(..) | Condition::All(_) => false,
                };
                let chosen = all.into_iter().find(|variant| fits(&variant.condition));
                chosen.map(|variant| variant.dispatches).unwrap_or_default()
            }
        };
        let Some(dispatch) = dispatches.first() else { return Ok(None) };
        let Ok(env) = symbols.bind(&[]) else { return Ok(None) };
        Ok(Some(made(&members[0], dispatch, &env, &texts)))
    }

    /// What an element of the result must be.
    pub fn expected(&self, row: u64, column: u64, b_first: u64) -> f64 {
        let a = |k: u64| f64::from(value(0, row * self.k + k));
        let b = |k: u64| {
            f64::from(value(1, b_first + if self.along_k { column * self.k + k } else { k * self.n + column }))
        };
        let gain = |k: u64| f64::from(value(2, k));
        let norm = matches!(self.with, With::RowScale | With::Prologue);
        let sum: f64 = (0..self.k).map(|k| a(k) * b(k) * if norm { gain(k) } else { 1.0 }).sum();
        match self.with {
            With::Nothing => sum,
            With::Epilogue => {
                let x = sum + gain(column);
                x / (1.0 + (-x).exp())
            }
            With::RowScale | With::Prologue => {
                let squares: f64 = (0..self.k).map(|k| a(k) * a(k)).sum();
                sum / (squares / self.k as f64 + EPS).sqrt()
            }
        }
    }
}

fn made(member: &Member, dispatch: &Dispatch, env: &Env, texts: &Texts) -> Made {
    let buffer = |binding: &Binding| match binding {
        Binding::Read(_, k) => match &member.reads[*k].0 {
            Operand::Memory(place) => place.buffer,
            Operand::Index(_) => unreachable!("no argument here is the index of a loop"),
        },
        Binding::Write(_) => member.write.buffer,
    };
    let word = |(_, word): &(String, Word)| match word {
        Word::Size(dim) => dim.eval(env) as u32,
        Word::SizeAsFloat(dim) => (dim.eval(env) as f32).to_bits(),
        // Every buffer is bound from where its value begins.
        Word::Inside(_) | Word::Index(_) => 0,
    };
    Made {
        text: texts.list()[dispatch.text as usize].clone(),
        bindings: dispatch.bindings.iter().map(buffer).collect(),
        words: dispatch.words.iter().map(word).collect(),
        groups: dispatch.groups.eval(env).unsigned_abs(),
    }
}
