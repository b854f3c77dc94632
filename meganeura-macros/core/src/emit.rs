//! Schedules to tokens: the model's type, its methods, and the data that they replay. Cannot fail.
//!
//! The type and its methods follow from the text alone and are there before imports arrive, also where the model has
//! mistakes: they ask `Self::__entry_x()` and its kin for data. Those are functions of a trait that every type has, and
//! of the type itself once it is compiled, which go before. An instance of an imported model gets the methods of its
//! entries with the data. Names that the user wrote keep their spans, for an editor and for rustc's own complaints;
//! everything else has the span of the call, so that lints of the user's crate leave it alone.

use std::collections::BTreeSet;

use meganeura_shaders::schedule::{Model, Schedule};
use proc_macro2::{Literal, Span, TokenStream};
use quote::{format_ident, quote};

use crate::syntax::{Attributes, Definition, Element, Function, Ident, Item, Type, TypeKind, written};

/// A schedule with the shader texts that it names.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheduled {
    /// The steps.
    pub schedule: Schedule,
    /// Shader texts by id.
    pub texts: Vec<String>,
    /// Why the steps are what they are.
    pub explanation: String,
}

/// What became of an entry.
#[derive(Clone, Debug)]
pub struct CompiledEntry {
    /// Its name.
    pub name: String,
    /// What a call runs.
    pub call: Scheduled,
    /// What a traced call runs, where something is tapped.
    pub trace: Option<Scheduled>,
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

/// What the text shows of a model: its type and, with its definition, the methods of its entries.
pub fn declared(facade: &TokenStream, item: &Item, definition: Option<&Definition>) -> TokenStream {
    let private = quote!(#facade::__private::v1);
    let (name, visibility) = (item.name.to_token(), &item.visibility.tokens);
    let docs = docs(&item.attributes, &format!("The model `{}`.", item.name.name));
    let no_data = NO_DATA;
    let names = [model_name(), parameters_name(), count_name()];
    let [model, parameters, count] = &names;
    let type_and_methods = quote! {
        #docs
        #visibility struct #name { __session: #private::Session }
    };
    let fallbacks = quote! {
        const #parameters: &'static [#private::Parameter] = &[];
        const #count: u64 = 0;
        fn #model() -> &'static #private::Model { const { ::core::panic!(#no_data) } }
    };
    let general = quote! {
        impl #name {
            /// The parameters in order. `{}` in a name stands for each index of an array of layers, and the first axes of
            /// the shape count those.
            pub const PARAMETERS: &'static [#private::Parameter] = Self::#parameters;
            /// The number of elements of all parameters together.
            pub const PARAMETER_COUNT: u64 = Self::#count;
            /// A model with freshly initialised parameters; the same as `with_seed(device, 0)`.
            pub fn new(device: &#facade::Device) -> ::core::result::Result<Self, #facade::Error> {
                Self::with_seed(device, 0)
            }
            /// A model whose parameters follow from the seed, the same on every device.
            pub fn with_seed(device: &#facade::Device, seed: u64) -> ::core::result::Result<Self, #facade::Error> {
                ::core::result::Result::Ok(Self { __session: #private::Session::new(device, Self::#model(), seed)? })
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
                #facade::Loader::new(Self::#model(), |session| Self { __session: session })
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
            /// Another model over the same parameters, with states of its own: what one of them trains is seen by both.
            pub fn share(&self) -> Self {
                Self { __session: self.__session.share() }
            }
            /// Sets all states to zero.
            pub fn reset(&mut self) {
                self.__session.reset();
            }
        }
    };
    let Methods { trainer, tokens, data, told } = match definition {
        Some(definition) => methods(facade, item, definition, None),
        None => Methods::default(),
    };
    quote! {
        #type_and_methods
        #trainer
        const _: () = {
            #[allow(dead_code)]
            trait Unplanned: ::core::marker::Sized {
                #fallbacks
                #(fn #data() -> &'static #private::Entry { const { ::core::panic!(#no_data) } })*
                #(fn #told() -> &'static str { const { ::core::panic!(#no_data) } })*
            }
            impl<T> Unplanned for T {}
            #general
            #tokens
        };
    }
}

/// What stands in a program where a fault of the compiler left a model without data. It is evaluated only where code is
/// generated, so never beside other errors.
const NO_DATA: &str = "meganeura has a fault: a model was not compiled, and no other error says why; please report it";

/// The data of a model, and the methods of its entries where its text did not show them.
pub fn planned(facade: &TokenStream, item: &Item, definition: Option<&Definition>, compiled: &Compiled) -> TokenStream {
    let private = quote!(#facade::__private::v1);
    let name = item.name.to_token();
    let Methods { trainer, tokens, .. } = match definition {
        Some(definition) => methods(facade, item, definition, Some(item.name.span)),
        None => Methods::default(),
    };
    let mut statics = Statics { private: &private, texts: vec![], count: 0, tokens: TokenStream::new() };
    let mut tables = String::new();
    let entries = compiled.entries.iter().map(|entry| {
        let mut add = |kind: &str, shown: &str, scheduled: &Scheduled| {
            if !shown.is_empty() || kind.is_empty() {
                tables += &format!("\n\n`{}`{shown}:\n\n```text\n{}```", entry.name, scheduled.schedule);
            }
            statics.entry(&format!("{}{kind}", entry.name), scheduled)
        };
        let call = add("", "", &entry.call);
        // What taps nothing is traced by what a call runs.
        let traced = entry.trace.as_ref().map_or_else(|| call.clone(), |trace| add(", traced", "", trace));
        let train = entry.train.as_ref().map(|train| (train_name(&entry.name), add(", training", ", training", train)));
        let told = [(explain_name(&entry.name), Some(&entry.call)), (why_name(&entry.name), entry.train.as_ref())];
        let told = told.into_iter().filter_map(|(function, scheduled)| {
            let text = &scheduled?.explanation;
            Some(quote!(fn #function() -> &'static str { #text }))
        });
        let all = [(entry_name(&entry.name), call), (trace_name(&entry.name), traced)].into_iter().chain(train);
        let all = all.map(|(function, data)| quote!(fn #function() -> &'static #private::Entry { &#data }));
        all.chain(told).collect::<TokenStream>()
    });
    let entries: TokenStream = entries.collect();
    let (model, parameters) = (bytes(&compiled.model), parameters(&private, &compiled.model));
    let (data, model_name) = (statics.tokens, model_name());
    let tables = format!("{}\n\nWhat the entries run, step by step.{tables}", parameter_table(&compiled.model));
    quote! {
        #trainer
        const _: () = {
            static MODEL: #private::Model = #private::Model { bytes: #model };
            #data
            #[allow(dead_code)]
            impl #name {
                #parameters
                fn #model_name() -> &'static #private::Model { &MODEL }
                #entries
            }
            #[doc = #tables]
            impl #name {}
            #tokens
        };
    }
}

/// The parameters as rustdoc shows them.
fn parameter_table(model: &Model) -> String {
    let rows = model.tensors.iter().filter(|tensor| tensor.saved).map(|tensor| {
        let sizes: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
        let trained = if tensor.trained { "yes" } else { "no" };
        format!("\n| `{}` | `[{}]` | {trained} |", tensor.name, sizes.join(", "))
    });
    let rows: String = rows.collect();
    if rows.is_empty() {
        return "It has no parameters.".into();
    }
    let each = "`{}` in a name stands for each index of an array of layers; the first sizes of the shape count those.";
    format!("{each}\n\n| parameter | shape | trained |\n|---|---|---|{rows}")
}

fn model_name() -> proc_macro2::Ident {
    format_ident!("__model", span = Span::call_site())
}

fn parameters_name() -> proc_macro2::Ident {
    format_ident!("__PARAMETERS", span = Span::call_site())
}

fn count_name() -> proc_macro2::Ident {
    format_ident!("__PARAMETER_COUNT", span = Span::call_site())
}

fn entry_name(entry: &str) -> proc_macro2::Ident {
    format_ident!("__entry_{entry}", span = Span::call_site())
}

fn train_name(entry: &str) -> proc_macro2::Ident {
    format_ident!("__train_{entry}", span = Span::call_site())
}

fn trace_name(entry: &str) -> proc_macro2::Ident {
    format_ident!("__trace_{entry}", span = Span::call_site())
}

fn explain_name(entry: &str) -> proc_macro2::Ident {
    format_ident!("__explain_{entry}", span = Span::call_site())
}

fn why_name(entry: &str) -> proc_macro2::Ident {
    format_ident!("__why_{entry}", span = Span::call_site())
}

/// What follows from the entries of a definition.
#[derive(Default)]
struct Methods {
    /// The type of the trainer.
    trainer: TokenStream,
    /// The methods of both types.
    tokens: TokenStream,
    /// The functions that they ask for data.
    data: Vec<proc_macro2::Ident>,
    /// Those that they ask for explanations.
    told: Vec<proc_macro2::Ident>,
}

/// `at`: where the names are, if they stand in the text of another invocation.
fn methods(facade: &TokenStream, item: &Item, definition: &Definition, at: Option<Span>) -> Methods {
    let entries = entries(definition);
    let name = item.name.to_token();
    let losses = entries.iter().filter(|(attributes, _)| attributes.train.is_some()).map(|(_, function)| *function);
    let losses: Vec<&Function> = losses.collect();
    let calls = entries.iter().map(|(attributes, function)| entry_method(facade, function, attributes, at));
    let calls: TokenStream = calls.collect();
    let (trainer_type, training) = match losses.is_empty() {
        true => Default::default(),
        false => (trainer_type(facade, item), trainer(facade, item, &losses, at)),
    };
    let of_losses = losses.iter().map(|function| train_name(&function.name.name));
    let names = || entries.iter().map(|(_, function)| &function.name.name);
    let whys = losses.iter().map(|function| why_name(&function.name.name));
    Methods {
        trainer: trainer_type,
        tokens: quote!(impl #name { #calls } #training),
        data: names().flat_map(|name| [entry_name(name), trace_name(name)]).chain(of_losses).collect(),
        told: names().map(|name| explain_name(name)).chain(whys).collect(),
    }
}

/// The entries of a model, of two with one name the first.
fn entries(definition: &Definition) -> Vec<(&Attributes, &Function)> {
    let mut seen = BTreeSet::new();
    definition.entries().into_iter().filter(|(_, function)| seen.insert(&function.name.name)).collect()
}

/// A name of the user, or from elsewhere.
fn token(name: &Ident, at: Option<Span>) -> proc_macro2::Ident {
    let mut token = name.to_token();
    if let Some(span) = at {
        token.set_span(span);
    }
    token
}

fn docs(attributes: &Attributes, otherwise: &str) -> TokenStream {
    if attributes.docs.is_empty() { quote!(#[doc = #otherwise]) } else { attributes.docs.clone() }
}

/// Statics beside the methods that use them; equal shader texts once.
struct Statics<'a> {
    private: &'a TokenStream,
    texts: Vec<String>,
    count: usize,
    tokens: TokenStream,
}

impl Statics<'_> {
    /// The static of an entry, which names only its own texts, so that an unused one leaves no trace in a program.
    fn entry(&mut self, name: &str, scheduled: &Scheduled) -> proc_macro2::Ident {
        let ident = format_ident!("ENTRY_{}", self.count, span = Span::call_site());
        self.count += 1;
        let private = self.private;
        let texts: Vec<_> = scheduled.texts.iter().map(|text| self.text(text)).collect();
        let schedule = bytes(&scheduled.schedule);
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
fn arguments(facade: &TokenStream, function: &Function, at: Option<Span>) -> (TokenStream, TokenStream) {
    let private = quote!(#facade::__private::v1);
    let each = function.parameters.iter().map(|parameter| {
        let name = token(&parameter.name, at);
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
        // A mistake, which must not become one of the traits too.
        Some(TypeKind::Tuple(types)) if types.iter().any(|ty| matches!(ty.kind, TypeKind::Tuple(_))) => quote!(()),
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

fn entry_method(facade: &TokenStream, function: &Function, attributes: &Attributes, at: Option<Span>) -> TokenStream {
    let docs = docs(attributes, &format!("Runs the entry `{}`.", function.name.name));
    let signature = format!("```text\n{}\n```", written::signature(function));
    let data = entry_name(&function.name.name);
    let name = token(&function.name, at);
    let (parameters, values) = arguments(facade, function, at);
    let result = result_type(facade, function.result.as_ref());
    let schedule = schedule_method(facade, &function.name, &quote!(Self::#data()));
    let told = explain_name(&function.name.name);
    let explain = explain_method(&function.name, &quote!(Self::#told()));
    let (traced, trace) =
        (trace_name(&function.name.name), format_ident!("trace_{}", function.name.name, span = Span::call_site()));
    let about = format!("Runs the entry `{}` and gives what its layers tap, by path.", function.name.name);
    quote! {
        #docs
        #[doc = ""]
        #[doc = #signature]
        pub fn #name<'a>(&mut self, #parameters) -> ::core::result::Result<#result, #facade::Error> {
            self.__session.call(Self::#data(), #values)
        }
        #[doc = #about]
        pub fn #trace<'a>(
            &mut self,
            #parameters
        ) -> ::core::result::Result<(#result, #facade::Trace), #facade::Error> {
            self.__session.trace(Self::#traced(), #values)
        }
        #schedule
        #explain
    }
}

fn schedule_method(facade: &TokenStream, entry: &Ident, data: &TokenStream) -> TokenStream {
    let name = format_ident!("schedule_{}", entry.name, span = Span::call_site());
    let about = format!("The schedule of `{}`: what a call runs, step by step; prints as a table.", entry.name);
    quote! {
        #[doc = #about]
        pub fn #name() -> ::core::result::Result<#facade::Schedule, #facade::Error> {
            #facade::Schedule::read(#data)
        }
    }
}

fn explain_method(entry: &Ident, text: &TokenStream) -> TokenStream {
    let name = format_ident!("explain_{}", entry.name, span = Span::call_site());
    let about = format!(
        "What the compiler decided for `{}`: for each kernel the statements that it serves, the rules that made it, its \
         cost against that of the operations one by one, and what was considered and not taken.",
        entry.name
    );
    quote! {
        #[doc = #about]
        pub fn #name() -> &'static str {
            #text
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

/// What a step by a loss gives: the loss, and beside it the other results.
fn step_type(facade: &TokenStream, function: &Function) -> TokenStream {
    match function.result.as_ref().map(|ty| &ty.kind) {
        Some(TypeKind::Tuple(types)) if types.iter().any(|ty| matches!(ty.kind, TypeKind::Tuple(_))) => quote!(()),
        Some(TypeKind::Tuple(types)) if types.len() > 1 => {
            let metrics = types.iter().skip(1).map(|ty| result_type(facade, Some(ty)));
            quote!((#facade::Loss, #(#metrics),*))
        }
        _ => quote!(#facade::Loss),
    }
}

fn trainer(facade: &TokenStream, item: &Item, losses: &[&Function], at: Option<Span>) -> TokenStream {
    let (name, model) = (trainer_name(item), item.name.to_token());
    let data: Vec<_> = losses.iter().map(|function| train_name(&function.name.name)).collect();
    let methods = losses.iter().enumerate().map(|(k, function)| {
        let data = &data[k];
        let (parameters, values) = arguments(facade, function, at);
        let schedule = schedule_method(facade, &function.name, &quote!(#model::#data()));
        let told = why_name(&function.name.name);
        let explain = explain_method(&function.name, &quote!(#model::#told()));
        let entry = &function.name.name;
        let own = |method: &str| match losses.len() {
            1 => format_ident!("{method}", span = Span::call_site()),
            _ => format_ident!("{method}_{entry}", span = Span::call_site()),
        };
        let (step, gradients, result) = (own("step"), own("gradients"), step_type(facade, function));
        let about = format!(
            "By `{entry}`: forward, backward and update in one submission. The loss is read when it is asked for."
        );
        let about_gradients = format!("The gradients of `{entry}` by the names of what it trains, without an update.");
        quote! {
            #[doc = #about]
            pub fn #step<'a>(&mut self, #parameters) -> ::core::result::Result<#result, #facade::Error> {
                self.__trainer.step(&mut self.__model.__session, #k, #values)
            }
            #[doc = #about_gradients]
            pub fn #gradients<'a>(&mut self, #parameters) -> ::core::result::Result<#facade::Gradients, #facade::Error> {
                self.__trainer.gradients(&mut self.__model.__session, #k, #values)
            }
            #schedule
            #explain
        }
    });
    let methods: TokenStream = methods.collect();
    quote! {
        impl #model {
            /// Training with an optimizer; the model is in the trainer until `into_model`.
            pub fn trainer(
                self,
                optimizer: impl ::core::convert::Into<#facade::Optimizer>,
            ) -> ::core::result::Result<#name, #facade::Error> {
                let optimizer = ::core::convert::Into::into(optimizer);
                let mut model = self;
                let losses = &[#(Self::#data()),*];
                let trainer = #facade::__private::v1::Trainer::new(&mut model.__session, losses, optimizer)?;
                ::core::result::Result::Ok(#name { __model: model, __trainer: trainer })
            }
        }
        impl #name {
            #methods
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
        }
    }
}

fn parameters(private: &TokenStream, model: &Model) -> TokenStream {
    let (name, count_name) = (parameters_name(), count_name());
    let tensors = || model.tensors.iter().filter(|tensor| tensor.saved);
    let count: u64 = tensors().map(|t| t.shape.iter().product::<i64>().unsigned_abs()).sum();
    let rows = tensors().map(|tensor| {
        let (name, trained) = (&tensor.name, tensor.trained);
        let shape = tensor.shape.iter().map(|size| Literal::usize_unsuffixed(size.unsigned_abs() as usize));
        quote!(#private::Parameter { name: #name, shape: &[#(#shape),*], trained: #trained })
    });
    quote! {
        const #name: &'static [#private::Parameter] = &[#(#rows),*];
        const #count_name: u64 = #count;
    }
}
