//! Schedules to tokens: the model's type, its methods, and the data that they replay. Cannot fail.
//!
//! The signatures come from the text alone, so the type and its methods exist also where the model has mistakes.
//! Names that the user wrote keep their spans, for an editor and for rustc's own complaints; everything else has the
//! span of the call, so that lints of the user's crate leave it alone.

use std::collections::BTreeSet;

use meganeura_shaders::schedule::{Model, Schedule};
use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote};

use crate::syntax::{Attributes, Element, Function, Ident, Item, ItemBody, Type, TypeKind};

/// A schedule with the shader texts that it names.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// The steps.
    pub schedule: Schedule,
    /// Shader texts by id.
    pub texts: Vec<String>,
}

/// What became of an entry.
#[derive(Clone, Debug)]
pub struct CompiledEntry {
    /// Its name.
    pub name: String,
    /// What a call runs.
    pub call: Scheduled,
    /// What a training step runs, of a `#[train]` entry.
    pub train: Option<Scheduled>,
}

/// What became of a model.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Its tensors.
    pub model: Model,
    /// Its entries.
    pub entries: Vec<CompiledEntry>,
}

/// The type of a model with all its methods; without `compiled` they exist and do nothing.
pub fn model(facade: &TokenStream, item: &Item, compiled: Option<&Compiled>) -> TokenStream {
    let private = quote!(#facade::__private::v1);
    let (name, visibility) = (item.name.to_token(), &item.visibility.tokens);
    let docs = docs(&item.attributes, &format!("The model `{}`.", item.name.name));
    let entries = entries(item);
    let trained = entries.iter().find(|(attributes, _)| attributes.train.is_some()).map(|(_, function)| *function);
    let mut statics = Statics { private: &private, texts: vec![], tokens: TokenStream::new() };
    let model = match compiled {
        Some(compiled) => bytes(&compiled.model),
        None => quote!(b""),
    };
    let found = |function: &Function| compiled?.entries.iter().find(|entry| entry.name == function.name.name);
    let calls = entries.iter().map(|(attributes, function)| {
        let docs = self::docs(attributes, &format!("Runs the entry `{}`.", function.name.name));
        entry_method(facade, function, found(function).map(|entry| &entry.call), &mut statics, docs)
    });
    let calls: TokenStream = calls.collect();
    let training = trained.map(|function| {
        trainer(facade, item, function, found(function).and_then(|entry| entry.train.as_ref()), &mut statics)
    });
    let parameters = parameters(&private, compiled.map(|c| &c.model));
    let trainer_type = trained.map(|_| trainer_type(facade, item));
    let data = statics.tokens;
    quote! {
        #docs
        #visibility struct #name { __session: #private::Session }
        #trainer_type
        const _: () = {
            static MODEL: #private::Model = #private::Model { bytes: #model };
            #data
            impl #name {
                #parameters
                /// A model with freshly initialised parameters; the same as `with_seed(device, 0)`.
                pub fn new(device: &#facade::Device) -> ::core::result::Result<Self, #facade::Error> {
                    Self::with_seed(device, 0)
                }
                /// A model whose parameters follow from the seed, the same on every device.
                pub fn with_seed(device: &#facade::Device, seed: u64) -> ::core::result::Result<Self, #facade::Error> {
                    ::core::result::Result::Ok(Self { __session: #private::Session::new(device, &MODEL, seed)? })
                }
                /// A model with the parameters of a safetensors file (a path or its bytes). Everything that does not
                /// fit is in one error, and nothing is half-loaded.
                pub fn load<'a>(
                    device: &#facade::Device,
                    source: impl ::core::convert::Into<#facade::WeightSource<'a>>,
                ) -> ::core::result::Result<Self, #facade::Error> {
                    Self::loader().load(device, source)
                }
                /// Loads as `load` does, with named exceptions.
                pub fn loader() -> #facade::Loader<Self> {
                    #facade::Loader::new(&MODEL, |session| Self { __session: session })
                }
                /// Writes all parameters to a safetensors file; the file is replaced as a whole or not at all.
                pub fn save(
                    &self,
                    path: impl ::core::convert::AsRef<#private::Path>,
                ) -> ::core::result::Result<(), #facade::Error> {
                    self.save_only("*", path)
                }
                /// The same for the parameters whose names match a pattern, in which `*` stands for any text.
                pub fn save_only(
                    &self,
                    pattern: &str,
                    path: impl ::core::convert::AsRef<#private::Path>,
                ) -> ::core::result::Result<(), #facade::Error> {
                    self.__session.save(pattern, ::core::convert::AsRef::as_ref(&path))
                }
                /// Another model over the same parameters: what one of them trains is seen by both.
                pub fn share(&self) -> Self {
                    Self { __session: self.__session.share() }
                }
                #calls
            }
            #training
        };
    }
}

/// The entries of a model, of two with one name the first.
fn entries(item: &Item) -> Vec<(&Attributes, &Function)> {
    let ItemBody::Definition(definition) = &item.body else { return vec![] };
    let mut seen = BTreeSet::new();
    definition.entries().into_iter().filter(|(_, function)| seen.insert(&function.name.name)).collect()
}

fn docs(attributes: &Attributes, otherwise: &str) -> TokenStream {
    if attributes.docs.is_empty() { quote!(#[doc = #otherwise]) } else { attributes.docs.clone() }
}

/// Statics beside the methods that use them; equal shader texts once.
struct Statics<'a> {
    private: &'a TokenStream,
    texts: Vec<String>,
    tokens: TokenStream,
}

impl Statics<'_> {
    /// The static of an entry, which names only its own texts, so that an unused one leaves no trace in a program.
    fn entry(&mut self, name: &str, scheduled: Option<&Scheduled>) -> proc_macro2::Ident {
        let ident = format_ident!("ENTRY_{}", name.to_uppercase(), span = Span::call_site());
        let private = self.private;
        let (schedule, texts) = match scheduled {
            None => (quote!(b""), vec![]),
            Some(scheduled) => {
                (bytes(&scheduled.schedule), scheduled.texts.iter().map(|text| self.text(text)).collect::<Vec<_>>())
            }
        };
        self.tokens.extend(quote! {
            static #ident: #private::Entry = #private::Entry { name: #name, schedule: #schedule, texts: &[#(#texts),*] };
        });
        ident
    }

    fn text(&mut self, text: &str) -> proc_macro2::Ident {
        let known = self.texts.iter().position(|other| other == text);
        let index = known.unwrap_or(self.texts.len());
        let ident = format_ident!("TEXT_{index}", span = Span::call_site());
        if known.is_none() {
            self.texts.push(text.to_string());
            self.tokens.extend(quote!(static #ident: &str = #text;));
        }
        ident
    }
}

fn bytes(data: &impl serde::Serialize) -> TokenStream {
    // The types have neither maps nor unsized sequences, so writing to memory cannot fail.
    let bytes = postcard::to_allocvec(data).unwrap_or_default();
    let literal = Literal::byte_string(&bytes);
    quote!(#literal)
}

/// The parameters of a method and the arguments that they make.
fn arguments(facade: &TokenStream, function: &Function) -> (TokenStream, TokenStream) {
    let private = quote!(#facade::__private::v1);
    let each = function.parameters.iter().map(|parameter| {
        let name = parameter.name.to_token();
        match &parameter.ty.kind {
            TypeKind::Scalar(element) => {
                let element = rust_type(*element);
                (quote!(#name: #element), quote!(#private::scalar(#name)))
            }
            TypeKind::Tensor(tensor) => {
                let element = rust_type(tensor.element);
                (
                    quote!(#name: impl #facade::IntoArgument<'a, #element>),
                    quote!(#private::argument::<#element>(#name)?),
                )
            }
            TypeKind::Tuple(_) | TypeKind::Poison => (quote!(#name: ()), quote!(#private::nothing(#name))),
        }
    });
    let (parameters, values): (Vec<_>, Vec<_>) = each.unzip();
    (quote!(#(#parameters),*), quote!(&[#(#values),*]))
}

fn rust_type(element: Element) -> TokenStream {
    match element {
        Element::F32 => quote!(f32),
        Element::U32 => quote!(u32),
        Element::I32 => quote!(i32),
        Element::U8 => quote!(u8),
        Element::Bool => quote!(bool),
    }
}

fn result_type(facade: &TokenStream, ty: Option<&Type>) -> TokenStream {
    match ty.map(|ty| &ty.kind) {
        Some(TypeKind::Scalar(element)) => tensor_type(facade, *element),
        Some(TypeKind::Tensor(tensor)) => tensor_type(facade, tensor.element),
        Some(TypeKind::Tuple(types)) => {
            let types = types.iter().map(|ty| result_type(facade, Some(ty)));
            quote!((#(#types),*))
        }
        Some(TypeKind::Poison) | None => quote!(()),
    }
}

fn tensor_type(facade: &TokenStream, element: Element) -> TokenStream {
    let element = rust_type(element);
    quote!(#facade::Tensor<#element>)
}

fn entry_method(
    facade: &TokenStream,
    function: &Function,
    scheduled: Option<&Scheduled>,
    statics: &mut Statics<'_>,
    docs: TokenStream,
) -> TokenStream {
    let entry = statics.entry(&function.name.name, scheduled);
    let name = function.name.to_token();
    let (parameters, values) = arguments(facade, function);
    let result = result_type(facade, function.result.as_ref());
    let table = scheduled.map(|scheduled| {
        let text = format!("\n\n```text\n{}```", scheduled.schedule);
        quote!(#[doc = #text])
    });
    let schedule = schedule_method(facade, &function.name, &entry);
    quote! {
        #docs
        #table
        pub fn #name<'a>(&mut self, #parameters) -> ::core::result::Result<#result, #facade::Error> {
            self.__session.call(&#entry, #values)
        }
        #schedule
    }
}

fn schedule_method(facade: &TokenStream, entry: &Ident, data: &proc_macro2::Ident) -> TokenStream {
    let name = format_ident!("schedule_{}", entry.name, span = Span::call_site());
    let about = format!("The schedule of `{}`: what a call runs, step by step; prints as a table.", entry.name);
    quote! {
        #[doc = #about]
        pub fn #name() -> ::core::result::Result<#facade::Schedule, #facade::Error> {
            #facade::Schedule::read(&#data)
        }
    }
}

fn trainer_name(item: &Item) -> proc_macro2::Ident {
    format_ident!("{}Trainer", item.name.name, span = item.name.span)
}

fn trainer_type(facade: &TokenStream, item: &Item) -> TokenStream {
    let (name, visibility) = (trainer_name(item), &item.visibility.tokens);
    let model = item.name.to_token();
    let about = format!("Trains [`{}`]: the model together with an optimizer and its moments.", item.name.name);
    quote! {
        #[doc = #about]
        #visibility struct #name { __model: #model, __trainer: #facade::__private::v1::Trainer }
    }
}

fn trainer(
    facade: &TokenStream,
    item: &Item,
    function: &Function,
    scheduled: Option<&Scheduled>,
    statics: &mut Statics<'_>,
) -> TokenStream {
    let entry = statics.entry(&format!("{}_train", function.name.name), scheduled);
    let (name, model) = (trainer_name(item), item.name.to_token());
    let (parameters, values) = arguments(facade, function);
    let schedule = schedule_method(facade, &function.name, &entry);
    quote! {
        impl #model {
            /// Training with an optimizer; the model is in the trainer until `into_model`.
            pub fn trainer(
                self,
                optimizer: impl ::core::convert::Into<#facade::Optimizer>,
            ) -> ::core::result::Result<#name, #facade::Error> {
                let optimizer = ::core::convert::Into::into(optimizer);
                let mut model = self;
                let trainer = #facade::__private::v1::Trainer::new(&mut model.__session, &#entry, optimizer)?;
                ::core::result::Result::Ok(#name { __model: model, __trainer: trainer })
            }
        }
        impl #name {
            /// Forward, backward and update in one submission. The loss is read when it is asked for.
            pub fn step<'a>(&mut self, #parameters) -> ::core::result::Result<#facade::Loss, #facade::Error> {
                self.__trainer.step(&mut self.__model.__session, #values)
            }
            /// The gradients of all trained parameters by name, without an update.
            pub fn gradients<'a>(&mut self, #parameters) -> ::core::result::Result<#facade::Gradients, #facade::Error> {
                self.__trainer.gradients(&mut self.__model.__session, #values)
            }
            /// The optimizer, to change its rates between steps.
            pub fn optimizer(&mut self) -> &mut #facade::Optimizer {
                self.__trainer.optimizer()
            }
            /// The model as it is now, for evaluation in between.
            pub fn model(&mut self) -> &mut #model {
                &mut self.__model
            }
            /// The trained model.
            pub fn into_model(self) -> #model {
                self.__model
            }
            #schedule
        }
    }
}

fn parameters(private: &TokenStream, model: Option<&Model>) -> TokenStream {
    let tensors = model.map_or(&[][..], |model| &model.tensors);
    let count: u64 = tensors.iter().map(|t| t.shape.iter().product::<i64>().unsigned_abs()).sum();
    let rows = tensors.iter().map(|tensor| {
        let (name, trained) = (&tensor.name, tensor.trained);
        let shape = tensor.shape.iter().map(|size| Literal::usize_unsuffixed(size.unsigned_abs() as usize));
        quote!(#private::Parameter { name: #name, shape: &[#(#shape),*], trained: #trained })
    });
    quote! {
        /// The parameters in order. `{}` in a name stands for each index of an array of layers, and the first axes of
        /// the shape count those.
        pub const PARAMETERS: &'static [#private::Parameter] = &[#(#rows),*];
        /// The number of elements of all parameters together.
        pub const PARAMETER_COUNT: u64 = #count;
    }
}
