//! Loading and saving of weights: exact values, one error with every problem, files that are whole or untouched.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use meganeura_runtime::weights::{Entry, Expected, Rules, Weights, save};
use meganeura_runtime::{Error, WeightProblem};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of its own for each test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("meganeura-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The bytes of a file with these tensors: name, type, shape, data.
fn file(tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let mut end = 0;
    let entry = |(name, kind, shape, data): &(&str, &str, &[usize], Vec<u8>)| {
        let start = end;
        end += data.len();
        format!("\"{name}\":{{\"dtype\":\"{kind}\",\"shape\":{shape:?},\"data_offsets\":[{start},{end}]}}")
    };
    let header = format!("{{{}}}", tensors.iter().map(entry).collect::<Vec<_>>().join(","));
    with_header(header.as_bytes(), &tensors.iter().flat_map(|(_, _, _, data)| data.clone()).collect::<Vec<u8>>())
}

fn with_header(header: &[u8], data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header, data].concat()
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn u16s(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn expected(tensors: &[(&str, &[usize])]) -> Vec<Expected> {
    tensors.iter().map(|(name, shape)| Expected { name: name.to_string(), shape: shape.to_vec() }).collect()
}

fn problems(bytes: &[u8], wanted: &[(&str, &[usize])]) -> Vec<WeightProblem> {
    problems_with(bytes, wanted, &Rules::default())
}

fn problems_with(bytes: &[u8], wanted: &[(&str, &[usize])], rules: &Rules) -> Vec<WeightProblem> {
    match Weights::open(bytes, &expected(wanted), rules) {
        Err(Error::Weights { problems, .. }) => problems,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_type_converts_exactly_and_unaligned() {
    let bits = [0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0001, 0x83ff, 0x3555, 0x7c00];
    let halves = [0.0, -0.0, 1.0, -2.0, 65504.0, 5.960_464_5e-8, -6.097_555e-5, 0.333_251_95, f32::INFINITY];
    let bytes = file(&[
        ("odd", "BF16", &[1], u16s(&[0x3f80])),
        ("a", "F32", &[2, 1], f32s(&[1.5, -0.1])),
        ("h", "F16", &[9], u16s(&bits)),
        ("b", "BF16", &[3], u16s(&[0x3f80, 0xc040, 0x7f7f])),
    ]);
    // Whatever the address of the vector is, one of these is misaligned for f32.
    for shift in 0..4 {
        let shifted = [vec![0; shift], bytes.clone()].concat();
        let wanted = expected(&[("a", &[2, 1]), ("b", &[3]), ("h", &[9]), ("odd", &[1])]);
        let weights = Weights::open(&shifted[shift..], &wanted, &Rules::default()).unwrap();
        assert_eq!(weights.to_vec(0).unwrap(), [1.5, -0.1]);
        assert_eq!(weights.to_vec(1).unwrap(), [1.0, -3.0, f32::from_bits(0x7f7f_0000)]);
        let found = weights.to_vec(2).unwrap();
        assert_eq!(found.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), halves.map(f32::to_bits));
        assert_eq!(weights.to_vec(3).unwrap(), [1.0]);
    }
}

#[test]
fn parts_are_read_from_any_element_and_never_beyond_the_end() {
    let values: Vec<u16> = (0..1000).map(|i| 0x3c00 + i).collect();
    let bytes = file(&[("h", "F16", &[1000], u16s(&values))]);
    let weights = Weights::open(&bytes, &expected(&[("h", &[1000])]), &Rules::default()).unwrap();
    let all = weights.to_vec(0).unwrap();
    assert_eq!(all[999], 1.0 + 999.0 / 1024.0);
    let mut part = vec![0.0; 301];
    assert!(weights.read(0, 257, &mut part));
    assert_eq!(part, all[257..558]);
    assert!(!weights.read(0, 700, &mut part));
    assert!(!weights.read(0, usize::MAX, &mut part));
    assert!(!weights.read(1, 0, &mut part));
}

#[test]
fn one_error_lists_every_problem() {
    let bytes = file(&[
        ("fc1.weigth", "F32", &[2], f32s(&[1.0, 2.0])),
        ("fc2.weight", "F32", &[3, 2], f32s(&[0.0; 6])),
        ("fc3.weight", "I64", &[1], vec![0; 8]),
        ("fc4.weight", "F32", &[1, 2], f32s(&[0.0; 2])),
        ("steps", "I64", &[], vec![0; 8]),
    ]);
    let wanted: &[(&str, &[usize])] =
        &[("fc1.weight", &[2]), ("fc2.weight", &[2, 3]), ("fc3.weight", &[1]), ("fc4.weight", &[2, 2])];
    let missing = |name: &str, shape: &[usize]| WeightProblem::Missing { name: name.into(), shape: shape.into() };
    let unexpected = |name: &str, shape: &[usize], nearest: Option<&str>| WeightProblem::Unexpected {
        name: name.into(),
        shape: shape.into(),
        nearest: nearest.map(Into::into),
    };
    let shape = |name: &str, expected: &[usize], found: &[usize]| WeightProblem::Shape {
        name: name.into(),
        expected: expected.into(),
        found: found.into(),
    };
    assert_eq!(
        problems(&bytes, wanted),
        [
            missing("fc1.weight", &[2]),
            shape("fc2.weight", &[2, 3], &[3, 2]),
            WeightProblem::Type { name: "fc3.weight".into(), found: "I64".into() },
            shape("fc4.weight", &[2, 2], &[1, 2]),
            unexpected("fc1.weigth", &[2], Some("fc1.weight")),
            unexpected("steps", &[], None),
        ]
    );
    let text = Weights::open(&bytes, &expected(wanted), &Rules::default()).unwrap_err().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[1..],
        [
            "  missing `fc1.weight` [2]",
            "  `fc2.weight`: expected shape [2, 3], found [3, 2] (the transpose)",
            "  `fc3.weight`: expected elements that convert to f32, found I64",
            "  `fc4.weight`: expected shape [2, 2], found [1, 2]",
            "  unexpected `fc1.weigth` [2], similar to `fc1.weight`",
            "  unexpected `steps` []",
        ]
    );
    assert!(lines[0].ends_with("6 problems found:"), "{}", lines[0]);
}

#[test]
fn rules_allow_and_rename() {
    let bytes = file(&[
        ("bert.fc.weight", "F32", &[1], f32s(&[4.0])),
        ("pooler.x", "I64", &[1], vec![0; 8]),
        ("bert.fc.gamma", "F32", &[1], f32s(&[5.0])),
    ]);
    let wanted = expected(&[("fc.bias", &[1]), ("fc.lora_a", &[7]), ("fc.weight", &[1])]);
    let rules = Rules::default()
        .rename("bert.", "")
        .rename_with(|name| name.replace("gamma", "bias"))
        .allow_unexpected("pooler.*")
        .allow_missing("*.lora_*");
    let weights = Weights::open(&bytes, &wanted, &rules).unwrap();
    assert_eq!((weights.to_vec(0), weights.to_vec(1), weights.to_vec(2)), (Some(vec![5.0]), None, Some(vec![4.0])));
    assert_eq!([0, 1, 2, 3].map(|index| weights.has(index)), [true, false, true, false]);
    let collide = Rules::default().rename_with(|_| "same".to_string());
    let found = problems_with(&bytes, &[("same", &[1])], &collide);
    assert!(matches!(&found[0], WeightProblem::Renamed { name, .. } if name == "same"), "{found:?}");
}

#[test]
fn a_tied_tensor_that_the_file_omits_is_its_twin_and_one_that_it_repeats_is_no_other() {
    let (embed, head): (&str, &str) = ("lm.model.embed_tokens.weight", "lm.lm_head.weight");
    let bytes = file(&[(embed, "F32", &[2, 1], f32s(&[1.5, 2.5]))]);
    let both = expected(&[(head, &[2, 1]), (embed, &[2, 1])]);
    let weights = Weights::open(&bytes, &both, &Rules::default()).unwrap();
    assert_eq!((weights.to_vec(0).unwrap(), weights.to_vec(1).unwrap()), (vec![1.5, 2.5], vec![1.5, 2.5]));
    let twice = |head_data: &[f32]| {
        file(&[(embed, "F32", &[2, 1], f32s(&[1.5, 2.5])), (head, "F32", &[2, 1], f32s(head_data))])
    };
    let repeated = twice(&[1.5, 2.5]);
    let weights = Weights::open(&repeated, &both[1..], &Rules::default()).unwrap();
    assert_eq!(weights.to_vec(0).unwrap(), [1.5, 2.5]);
    let found = problems(&twice(&[1.5, 2.0]), &[(embed, &[2, 1])]);
    assert!(matches!(&found[..], [WeightProblem::Unexpected { name, .. }] if name == head), "{found:?}");
}

#[test]
fn files_of_another_length_than_their_header_says_are_refused() {
    let bytes = file(&[("a", "F32", &[2], f32s(&[1.0, 2.0])), ("b", "F32", &[2], f32s(&[3.0, 4.0]))]);
    let wanted: &[(&str, &[usize])] = &[("a", &[2]), ("b", &[2])];
    let (expected, cut) = (bytes.len() as u64, bytes.len() - 4);
    let length = |found: u64, first_cut: Option<&str>| {
        vec![WeightProblem::Length { expected, found, first_cut: first_cut.map(Into::into) }]
    };
    assert_eq!(problems(&bytes[..cut], wanted), length(expected - 4, Some("b")));
    assert_eq!(problems(&bytes[..cut - 6], wanted), length(expected - 10, Some("a")));
    assert_eq!(problems(&[&bytes[..], &[0]].concat(), wanted), length(expected + 1, None));
}

#[test]
fn unreadable_headers_are_one_problem() {
    let good = file(&[("a", "F32", &[1], f32s(&[1.0]))]);
    let end = good.len() - 4;
    for bytes in [
        vec![],
        good[..7].to_vec(),
        good[..20].to_vec(),
        with_header(b"not json", &[]),
        with_header(b"[]", &[]),
        [&u64::MAX.to_le_bytes()[..], &good[8..]].concat(),
        with_header(br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}"#, &[0; 8]),
        with_header(br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#, &[0; 8]),
        with_header(br#"{"a":{"dtype":"Q9","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4]),
        with_header(br#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}"#, &[0; 4]),
        with_header(br#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}"#, &[0; 4]),
        with_header(&good[8..end - 1], &good[end..]),
    ] {
        let found = problems(&bytes, &[("a", &[1])]);
        assert!(matches!(&found[..], [WeightProblem::Header(_)]), "{found:?}");
    }
}

#[test]
fn padded_headers_and_files_without_tensors_load() {
    let header = br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    for padding in [&b""[..], b"   ", b"\0\0\0\0\0", b"  \0"] {
        let bytes = with_header(&[header, padding].concat(), &f32s(&[7.0]));
        let weights = Weights::open(&bytes, &expected(&[("a", &[1])]), &Rules::default()).unwrap();
        assert_eq!(weights.to_vec(0).unwrap(), [7.0]);
    }
    let metadata = with_header(br#"{"__metadata__":{"format":"pt"}}"#, &[]);
    assert!(Weights::open(&metadata, &[], &Rules::default()).is_ok());
    assert!(matches!(&problems(&metadata, &[("a", &[1])])[..], [WeightProblem::Missing { .. }]));
}

#[test]
fn shards_load_through_their_index() {
    let folder = Folder::new("shards");
    fs::write(folder.path("1.safetensors"), file(&[("a", "F32", &[1], f32s(&[1.0]))])).unwrap();
    fs::write(
        folder.path("2.safetensors"),
        file(&[("b", "F32", &[1], f32s(&[2.0])), ("c", "F32", &[1], f32s(&[3.0]))]),
    )
    .unwrap();
    let index = folder.path("model.safetensors.index.json");
    let write = |map: &str| fs::write(&index, format!(r#"{{"metadata":{{}},"weight_map":{map}}}"#)).unwrap();
    write(r#"{"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors"}"#);
    let wanted = expected(&[("c", &[1]), ("a", &[1]), ("b", &[1])]);
    let weights = Weights::open(&index, &wanted, &Rules::default()).unwrap();
    assert_eq!([0, 1, 2].map(|index| weights.to_vec(index).unwrap()), [[3.0], [1.0], [2.0]]);

    write(r#"{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}"#);
    let error = Weights::open(&index, &wanted, &Rules::default()).unwrap_err().to_string();
    assert!(error.contains("`b`: expected in `1.safetensors` by the index, not found there"), "{error}");
    write(r#"{"a":"1.safetensors","b":"3.safetensors"}"#);
    assert!(matches!(Weights::open(&index, &wanted, &Rules::default()).unwrap_err(), Error::File { .. }));
    for bad in [r#"{"a":"../1.safetensors"}"#, r#"{"a":"/etc/passwd"}"#, r#"{"a":1}"#, "[]"] {
        write(bad);
        assert!(matches!(Weights::open(&index, &wanted, &Rules::default()).unwrap_err(), Error::Weights { .. }));
    }
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    let folder = Folder::new("unopened");
    for path in [folder.path("none.safetensors"), folder.0.clone()] {
        let error = Weights::open(&path, &[], &Rules::default()).unwrap_err();
        assert!(matches!(error, Error::File { doing: "reading", .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
    fs::write(folder.path("empty"), []).unwrap();
    assert!(matches!(Weights::open(folder.path("empty"), &[], &Rules::default()), Err(Error::Weights { .. })));
}

fn entries(tensors: &[(&str, &[usize])]) -> Vec<Entry> {
    tensors.iter().map(|(name, shape)| Entry { name: name.to_string(), shape: shape.to_vec() }).collect()
}

/// Element `i` of tensor `t` is `salt + 1000 t + i`.
fn save_ramp(path: &Path, tensors: &[(&str, &[usize])], salt: f32) {
    save(path, &entries(tensors), |tensor, first, values| {
        for (i, value) in values.iter_mut().enumerate() {
            *value = salt + 1000.0 * tensor as f32 + (first + i) as f32;
        }
        Ok(())
    })
    .unwrap();
}

const SAVED: &[(&str, &[usize])] = &[("z.weight", &[3, 5]), ("scalar", &[]), ("none", &[0, 4]), ("a", &[300_001])];

#[test]
fn what_is_saved_loads_with_the_same_values() {
    let folder = Folder::new("saved");
    let path = folder.path("model.safetensors");
    save_ramp(&path, SAVED, 0.5);
    assert_eq!(folder.names(), ["model.safetensors"]);
    let weights = Weights::open(&path, &expected(SAVED), &Rules::default()).unwrap();
    for (index, (_, shape)) in SAVED.iter().enumerate() {
        let want: Vec<f32> = (0..shape.iter().product()).map(|i| 0.5 + 1000.0 * index as f32 + i as f32).collect();
        assert_eq!(weights.to_vec(index).unwrap(), want);
    }
    // The data of the first tensor is aligned, and the same values give the same bytes.
    let bytes = fs::read(&path).unwrap();
    assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()) % 8, 0);
    save_ramp(&folder.path("again"), SAVED, 0.5);
    assert_eq!(fs::read(folder.path("again")).unwrap(), bytes);
    // Other programs read it.
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.tensor("z.weight").unwrap().shape(), [3, 5]);
}

#[test]
fn saving_over_a_file_that_is_mapped_leaves_the_mapping_as_it_was() {
    let folder = Folder::new("mapped");
    let path = folder.path("model.safetensors");
    save_ramp(&path, SAVED, 0.0);
    let old = Weights::open(&path, &expected(SAVED), &Rules::default()).unwrap();
    save_ramp(&path, &[("z.weight", &[2])], 7.0);
    assert_eq!(old.to_vec(0).unwrap()[..3], [0.0, 1.0, 2.0]);
    assert_eq!(old.to_vec(3).unwrap()[300_000], 303_000.0);
    let new = Weights::open(&path, &expected(&[("z.weight", &[2])]), &Rules::default()).unwrap();
    assert_eq!(new.to_vec(0).unwrap(), [7.0, 8.0]);
    assert_eq!(folder.names(), ["model.safetensors"]);
}

#[test]
fn a_model_can_be_saved_over_the_file_that_it_is_read_from() {
    let folder = Folder::new("over");
    let path = folder.path("model.safetensors");
    save_ramp(&path, SAVED, 0.0);
    let before = fs::read(&path).unwrap();
    let weights = Weights::open(&path, &expected(SAVED), &Rules::default()).unwrap();
    save(&path, &entries(SAVED), |tensor, first, values| {
        assert!(weights.read(tensor, first, values));
        Ok(())
    })
    .unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_failure_while_saving_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new("failed");
    let path = folder.path("model.safetensors");
    save_ramp(&path, SAVED, 0.0);
    let before = fs::read(&path).unwrap();
    let lost = || Error::DeviceLost { device: "test".into(), reason: "test".into() };
    let result = save(&path, &entries(SAVED), |tensor, _, _| if tensor == 3 { Err(lost()) } else { Ok(()) });
    assert!(matches!(result.unwrap_err(), Error::DeviceLost { .. }));
    let twice = save(&path, &entries(&[("a", &[1]), ("b", &[1]), ("a", &[1])]), |_, _, _| Ok(())).unwrap_err();
    assert!(twice.to_string().contains("`a` twice"), "{twice}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(folder.names(), ["model.safetensors"]);
    // Renaming over a folder fails after everything was written.
    fs::create_dir(folder.path("folder")).unwrap();
    let error = save(folder.path("folder"), &entries(&[("a", &[1])]), |_, _, _| Ok(())).unwrap_err();
    assert!(matches!(error, Error::File { doing: "writing", .. }), "{error}");
    assert!(save(folder.path("no/such/folder"), &[], |_, _, _| Ok(())).is_err());
    assert_eq!(folder.names(), ["folder", "model.safetensors"]);
}
