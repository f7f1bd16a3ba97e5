package imagevector

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func TestDefault(t *testing.T) {
	v, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(defaultImages, &vectorFile{}); err != nil {
		t.Errorf("images.yaml has unknown or repeated keys: %v", err)
	}
	seen := map[string]bool{}
	for _, s := range v {
		if seen[s.key()] {
			t.Errorf("two entries %s: one of them is never found", s.key())
		}
		seen[s.key()] = true
	}

	for name, want := range map[string]string{
		"kube-apiserver": "registry.k8s.io/kube-apiserver:v1.36.3",
		"kube-proxy":     "registry.k8s.io/kube-proxy:v1.36.3",
		"pause":          "registry.k8s.io/pause:3.10.2",
		"etcd":           "registry.k8s.io/etcd:3.6.8-0",
	} {
		image, err := v.Find(name, Query{RuntimeVersion: "1.35.4", TargetVersion: "1.36.3"})
		if err != nil {
			t.Error(err)
		}
		if image.String() != want {
			t.Errorf("Find(%q) = %s, want %s", name, image, want)
		}
	}
}

// Landscapes pull it by the tag that it is built with.
func TestClusterAutoscalerIsTheOneThatIsBuilt(t *testing.T) {
	v, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	image, err := v.Find("cluster-autoscaler", Query{TargetVersion: "1.36.3"})
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := os.ReadFile(filepath.Join("..", "distribution", "cluster-autoscaler", "product.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var built struct {
		Version string
		Images  []struct{ Repository string }
	}
	if err := yaml.Unmarshal(recipe, &built); err != nil {
		t.Fatal(err)
	}
	if want := built.Images[0].Repository + ":" + built.Version; image.String() != want {
		t.Errorf("the image is %s, want %s", image, want)
	}
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		file    string
		want    Vector
		wantErr string
	}{
		"every field": {
			file: `
images:
- name: a
  sourceRepository: example.com/a
  repository: registry.example/a
  tag: v1
  version: "1"
  runtimeVersion: ">= 1.34"
  targetVersion: 1.36.x
  architectures: [amd64]
- name: b
  ref: registry.example/b:v2
`,
			want: Vector{
				{
					Name: "a", SourceRepository: "example.com/a", Repository: new("registry.example/a"), Tag: new("v1"), Version: new("1"),
					RuntimeVersion: new(">= 1.34"), TargetVersion: new("1.36.x"), Architectures: []string{"amd64"},
				},
				{Name: "b", Ref: new("registry.example/b:v2")},
			},
		},
		"keys of the original that we have no use for": {
			file: `
images:
- name: a
  repository: registry.example/a
  resourceId: {name: a}
  labels:
  - name: gardener.cloud/cve-categorisation
    value: {network_exposure: private}
`,
			want: Vector{{Name: "a", Repository: new("registry.example/a")}},
		},
		"an empty file is an empty vector": {file: "# nothing yet\n"},
		"another kind of file": {
			file:    "components:\n- name: a\n",
			wantErr: `parse image vector: no key "images" among ["components"]: is this another file?`,
		},
		"a map instead of a list": {
			file:    "images:\n  pause: registry.k8s.io/pause\n",
			wantErr: "parse image vector: error unmarshaling JSON",
		},
		"all mistakes at once": {
			file:    "images:\n- name: a\n- repository: r\n",
			wantErr: "[images[0].repository: Required value: give either repository or ref, images[1].name: Required value: components look an image up by its name]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read([]byte(tc.file))
			checkError(t, err, tc.wantErr)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Read() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		source Source
		want   []string
	}{
		"repository and tag":  {source: Source{Name: "a", Repository: new("r"), Tag: new("t"), RuntimeVersion: new(">= 1.6, < 1.8")}},
		"repository only":     {source: Source{Name: "a", Repository: new("r")}},
		"ref only":            {source: Source{Name: "a", Ref: new("r:t"), Architectures: []string{"arm64", "amd64"}}},
		"nothing":             {want: []string{"images[0].name: Required value", "images[0].repository: Required value"}},
		"ref beside the rest": {source: Source{Name: "a", Ref: new("r:t"), Repository: new("r"), Tag: new("t")}, want: []string{"images[0].repository: Forbidden", "images[0].tag: Forbidden"}},
		"empty ref":           {source: Source{Name: "a", Ref: new("")}, want: []string{"images[0].ref: Invalid value"}},
		"empty repository":    {source: Source{Name: "a", Repository: new("")}, want: []string{"images[0].repository: Invalid value"}},
		"empty tag":           {source: Source{Name: "a", Repository: new("r"), Tag: new("")}, want: []string{"images[0].tag: Invalid value"}},
		"constraints": {
			source: Source{Name: "a", Repository: new("r"), RuntimeVersion: new(""), TargetVersion: new("!@#")},
			want:   []string{"images[0].runtimeVersion: Invalid value", "images[0].targetVersion: Invalid value"},
		},
		"architectures": {
			source: Source{Name: "a", Repository: new("r"), Architectures: []string{"amd64", "x86"}},
			want:   []string{"images[0].architectures[1]: Unsupported value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range (Vector{tc.source}).Validate(field.NewPath("images")) {
				got = append(got, err.Field+": "+err.Type.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Validate() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFind(t *testing.T) {
	var (
		unconstrained = Source{Name: "a", Repository: new("any")}
		target136     = Source{Name: "a", Repository: new("target-1.36.x"), TargetVersion: new("1.36.x"), Tag: new("t")}
		target135up   = Source{Name: "a", Repository: new("target->=1.35"), TargetVersion: new(">= 1.35"), Tag: new("t")}
		targetExact   = Source{Name: "a", Repository: new("target-1.36.3"), TargetVersion: new("1.36.3"), Tag: new("t")}
		targetEquals  = Source{Name: "a", Repository: new("target-=1.36.3"), TargetVersion: new("= 1.36.3"), Tag: new("t")}
		runtime135    = Source{Name: "a", Repository: new("runtime-1.35.x"), RuntimeVersion: new("1.35.x"), Tag: new("t")}
		arm           = Source{Name: "a", Repository: new("arm"), Architectures: []string{"arm64"}, Tag: new("t")}
		amd           = Source{Name: "a", Repository: new("amd"), Architectures: []string{"amd64"}, Tag: new("t")}
	)
	for name, tc := range map[string]struct {
		vector  Vector
		query   Query
		want    string
		wantErr string
	}{
		"no such name": {
			vector: Vector{{Name: "b", Repository: new("any")}}, query: Query{TargetVersion: "1.36.3"},
			wantErr: `no image "a" for target version 1.36.3, architecture amd64 in the image vector`,
		},
		"the target version is the tag":                   {vector: Vector{unconstrained}, query: Query{TargetVersion: "1.36.3"}, want: "any:v1.36.3"},
		"a v before the target version is not doubled":    {vector: Vector{unconstrained}, query: Query{TargetVersion: "v1.36.3"}, want: "any:v1.36.3"},
		"the runtime version is not the tag":              {vector: Vector{unconstrained}, query: Query{RuntimeVersion: "1.36.3"}, want: "any"},
		"a range beats no constraint":                     {vector: Vector{unconstrained, target136}, query: Query{TargetVersion: "1.36.3"}, want: "target-1.36.x:t"},
		"a version beats a range":                         {vector: Vector{target136, targetExact}, query: Query{TargetVersion: "1.36.3"}, want: "target-1.36.3:t"},
		"an equals sign makes it exact":                   {vector: Vector{target136, targetEquals}, query: Query{TargetVersion: "1.36.3"}, want: "target-=1.36.3:t"},
		"of two ranges the first":                         {vector: Vector{target135up, target136}, query: Query{TargetVersion: "1.36.3"}, want: "target->=1.35:t"},
		"an exact target beats a runtime range":           {vector: Vector{runtime135, targetExact}, query: Query{RuntimeVersion: "1.35.4", TargetVersion: "1.36.3"}, want: "target-1.36.3:t"},
		"constraints that are not met":                    {vector: Vector{target136, runtime135}, query: Query{RuntimeVersion: "1.34.0", TargetVersion: "1.34.0"}, wantErr: `no image "a" for runtime version 1.34.0, target version 1.34.0, architecture amd64 in the image vector`},
		"a constraint on an empty field":                  {vector: Vector{runtime135}, query: Query{TargetVersion: "1.36.3"}, want: "runtime-1.35.x:t"},
		"a suffix of the version does not count":          {vector: Vector{target136}, query: Query{TargetVersion: "1.36.3-vendor.7+build"}, want: "target-1.36.x:t"},
		"amd64 is the default":                            {vector: Vector{arm, amd}, query: Query{}, want: "amd:t"},
		"one architecture beats both":                     {vector: Vector{unconstrained, arm}, query: Query{Architecture: "arm64"}, want: "arm:t"},
		"no architectures means both":                     {vector: Vector{amd, unconstrained}, query: Query{Architecture: "arm64"}, want: "any"},
		"an unknown architecture":                         {vector: Vector{unconstrained}, query: Query{Architecture: "riscv64"}, wantErr: `no image "a" for architecture riscv64 in the image vector`},
		"an invalid version":                              {vector: Vector{target136}, query: Query{TargetVersion: "latest"}, wantErr: `find image "a": version "latest"`},
		"a ref is taken as it is":                         {vector: Vector{{Name: "a", Ref: new("r:x@sha256:1")}}, query: Query{TargetVersion: "1.36.3"}, want: "r:x@sha256:1"},
		"a digest as the tag":                             {vector: Vector{{Name: "a", Repository: new("r"), Tag: new("sha256:1")}}, query: Query{}, want: "r@sha256:1"},
		"tag and digest":                                  {vector: Vector{{Name: "a", Repository: new("r"), Tag: new("v1@sha256:1")}}, query: Query{}, want: "r:v1@sha256:1"},
		"the constraint of an entry with another name":    {vector: Vector{{Name: "b", TargetVersion: new("!@#")}, unconstrained}, query: Query{TargetVersion: "1.36.3"}, want: "any:v1.36.3"},
		"a hyphen range that starts with a whole version": {vector: Vector{{Name: "a", Repository: new("range"), Tag: new("t"), TargetVersion: new("1.36.0 - 1.36.9")}, targetExact}, query: Query{TargetVersion: "1.36.3"}, want: "target-1.36.3:t"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.vector.Find("a", tc.query)
			checkError(t, err, tc.wantErr)
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("Find() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImageVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		source Source
		query  Query
		tag    string
		want   Image
	}{
		"given":               {source: Source{Repository: new("r"), Tag: new("sha256:1"), Version: new("1.2")}, want: Image{Repository: "r", Tag: "sha256:1", Version: "1.2"}},
		"from the tag":        {source: Source{Repository: new("r"), Tag: new("v1")}, want: Image{Repository: "r", Tag: "v1", Version: "v1"}},
		"from the default":    {source: Source{Repository: new("r")}, tag: "v2", want: Image{Repository: "r", Tag: "v2", Version: "v2"}},
		"default not needed":  {source: Source{Repository: new("r"), Tag: new("v1")}, tag: "v2", want: Image{Repository: "r", Tag: "v1", Version: "v1"}},
		"default beside ref":  {source: Source{Ref: new("r:v1")}, tag: "v2", want: Image{Ref: "r:v1"}},
		"default and version": {source: Source{Repository: new("r"), Version: new("1.2")}, tag: "v2", want: Image{Repository: "r", Tag: "v2", Version: "1.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Vector{tc.source}.Find("", tc.query)
			checkError(t, err, "")
			if diff := cmp.Diff(tc.want, got.WithDefaultTag(tc.tag)); diff != "" {
				t.Errorf("WithDefaultTag() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverwrite(t *testing.T) {
	base := Vector{
		{Name: "a", SourceRepository: "s", Repository: new("r"), Tag: new("t"), Version: new("1")},
		{Name: "a", Repository: new("r"), Tag: new("t136"), TargetVersion: new("1.36.x"), Architectures: []string{"amd64", "arm64"}},
		{Name: "b", Ref: new("b:1")},
	}
	for name, tc := range map[string]struct {
		overwrite Vector
		want      Vector
	}{
		"nothing": {want: base},
		"another repository keeps the tag": {
			overwrite: Vector{{Name: "a", Repository: new("mirror")}},
			want:      Vector{{Name: "a", SourceRepository: "s", Repository: new("mirror"), Tag: new("t"), Version: new("1")}, base[1], base[2]},
		},
		"another tag keeps the repository": {
			overwrite: Vector{{Name: "a", Tag: new("t2"), Version: new("2")}},
			want:      Vector{{Name: "a", SourceRepository: "s", Repository: new("r"), Tag: new("t2"), Version: new("2")}, base[1], base[2]},
		},
		"a ref replaces repository and tag": {
			overwrite: Vector{{Name: "a", Ref: new("x:y")}},
			want:      Vector{{Name: "a", SourceRepository: "s", Ref: new("x:y"), Version: new("1")}, base[1], base[2]},
		},
		"a repository replaces a ref": {
			overwrite: Vector{{Name: "b", Repository: new("mirror"), Tag: new("2")}},
			want:      Vector{base[0], base[1], {Name: "b", Repository: new("mirror"), Tag: new("2")}},
		},
		"only a version": {
			overwrite: Vector{{Name: "b", Version: new("1.0.1")}},
			want:      Vector{base[0], base[1], {Name: "b", Ref: new("b:1"), Version: new("1.0.1")}},
		},
		"the constraints say which entry, architectures in any order": {
			overwrite: Vector{{Name: "a", Repository: new("mirror"), TargetVersion: new("1.36.x"), Architectures: []string{"arm64", "amd64"}}},
			want:      Vector{base[0], {Name: "a", Repository: new("mirror"), Tag: new("t136"), TargetVersion: new("1.36.x"), Architectures: []string{"arm64", "amd64"}}, base[2]},
		},
		"other constraints and names are appended": {
			overwrite: Vector{{Name: "a", Repository: new("r"), RuntimeVersion: new("1.36.x")}, {Name: "c", Repository: new("c")}},
			want:      Vector{base[0], base[1], base[2], {Name: "a", Repository: new("r"), RuntimeVersion: new("1.36.x")}, {Name: "c", Repository: new("c")}},
		},
		"the last of two for the same entry wins": {
			overwrite: Vector{{Name: "b", Ref: new("b:2")}, {Name: "b", Ref: new("b:3")}},
			want:      Vector{base[0], base[1], {Name: "b", Ref: new("b:3")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := Vector{base[0], base[1], base[2]}
			if diff := cmp.Diff(tc.want, base.Overwrite(tc.overwrite)); diff != "" {
				t.Errorf("Overwrite() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, base); diff != "" {
				t.Errorf("Overwrite() changed its receiver (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverwriteFiles(t *testing.T) {
	dir := t.TempDir()
	images := writeFile(t, dir, "images.yaml", "images:\n- name: pause\n  repository: mirror.example/pause\n")
	components := writeFile(t, dir, "components.yaml", "components:\n- name: etcd-druid\n  imageVectorOverwrite: |\n    images:\n    - name: etcd\n      repository: r\n")
	broken := writeFile(t, dir, "broken.yaml", "images:\n- name: pause\n")

	for name, tc := range map[string]struct {
		env            map[string]string
		wantPause      string
		wantComponents ComponentOverwrites
		wantErr        string
	}{
		"none": {wantPause: "registry.k8s.io/pause:3.10.2"},
		"both": {
			env:            map[string]string{"IMAGEVECTOR_OVERWRITE": images, "IMAGEVECTOR_OVERWRITE_COMPONENTS": components},
			wantPause:      "mirror.example/pause:3.10.2",
			wantComponents: ComponentOverwrites{"etcd-druid": "images:\n- name: etcd\n  repository: r\n"},
		},
		"a missing file": {
			env:     map[string]string{"IMAGEVECTOR_OVERWRITE": filepath.Join(dir, "absent")},
			wantErr: "read image vector overwrite: open " + filepath.Join(dir, "absent"),
		},
		"a missing component file": {
			env:     map[string]string{"IMAGEVECTOR_OVERWRITE_COMPONENTS": filepath.Join(dir, "absent")},
			wantErr: "read component image vector overwrites: open " + filepath.Join(dir, "absent"),
		},
		"a broken file is named": {
			env:     map[string]string{"IMAGEVECTOR_OVERWRITE": broken},
			wantErr: "image vector overwrite " + broken + ": images[0].repository: Required value",
		},
		"the wrong kind of file": {
			env:     map[string]string{"IMAGEVECTOR_OVERWRITE_COMPONENTS": images},
			wantErr: "component image vector overwrites " + images + `: parse component image vectors: no key "components" among ["images"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, overwrites, err := OverwriteFilesFromEnv(func(key string) string { return tc.env[key] }).Load()
			checkError(t, err, tc.wantErr)
			if tc.wantErr != "" {
				return
			}
			pause, err := v.Find("pause", Query{})
			checkError(t, err, "")
			if pause.String() != tc.wantPause {
				t.Errorf("pause is %s, want %s", pause, tc.wantPause)
			}
			if diff := cmp.Diff(tc.wantComponents, overwrites); diff != "" {
				t.Errorf("component overwrites (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadComponentOverwrites(t *testing.T) {
	_, err := ReadComponentOverwrites([]byte(`
components:
- imageVectorOverwrite: "images: []"
- name: a
  imageVectorOverwrite: "images: [{name: x}]"
- name: a
  imageVectorOverwrite: "image: []"
`))
	checkError(t, err, "[components[0].name: Required value: says which component the images are for, "+
		"components[1].imageVectorOverwrite.images[0].repository: Required value: give either repository or ref, "+
		`components[2].name: Duplicate value: "a", `+
		`components[2].imageVectorOverwrite: Invalid value: parse image vector: no key "images" among ["image"]: is this another file?]`)
}

func TestPinDigests(t *testing.T) {
	digestOf := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	known := map[string]string{
		"registry.k8s.io/pause:3.10.2":       digestOf("1"),
		"registry.k8s.io/kube-proxy:v1.36.3": digestOf("2"),
		"registry.k8s.io/kube-proxy:v1.35.4": digestOf("3"),
		"own.example/machine":                digestOf("4"),
		"ref.example/a:1":                    digestOf("5"),
	}
	vector := Vector{
		{Name: "pause", Repository: new("registry.k8s.io/pause"), Tag: new("3.10.2"), RuntimeVersion: new(">= 1.30")},
		{Name: "kube-proxy", Repository: new("registry.k8s.io/kube-proxy")},
		{Name: "new-proxy", Repository: new("registry.k8s.io/kube-proxy"), TargetVersion: new(">= 1.36")},
		{Name: "machine", Repository: new("own.example/machine")},
		{Name: "ref", Ref: new("ref.example/a:1")},
		{Name: "pinned", Repository: new("r"), Tag: new("v1@" + digestOf("6"))},
		{Name: "unknown", Repository: new("r"), Tag: new("v1")},
	}
	got, err := PinDigests(vector, []string{"v1.35.4", "1.36.3", "1.37.0"}, func(ref string) (string, error) { return known[ref], nil })
	if err != nil {
		t.Fatal(err)
	}
	want := Vector{
		{Name: "pause", Repository: new("registry.k8s.io/pause"), Tag: new("3.10.2@" + digestOf("1")), Version: new("3.10.2"), RuntimeVersion: new(">= 1.30")},
		{Name: "kube-proxy", Repository: new("registry.k8s.io/kube-proxy"), Tag: new("v1.35.4@" + digestOf("3")), Version: new("v1.35.4"), TargetVersion: new("1.35.4")},
		{Name: "kube-proxy", Repository: new("registry.k8s.io/kube-proxy"), Tag: new("v1.36.3@" + digestOf("2")), Version: new("v1.36.3"), TargetVersion: new("1.36.3")},
		{Name: "new-proxy", Repository: new("registry.k8s.io/kube-proxy"), Tag: new("v1.36.3@" + digestOf("2")), Version: new("v1.36.3"), TargetVersion: new("1.36.3")},
		{Name: "machine", Repository: new("own.example/machine"), Tag: new(digestOf("4"))},
		{Name: "ref", Ref: new("ref.example/a:1@" + digestOf("5"))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PinDigests() (-want +got):\n%s", diff)
	}

	// The pinned vector is written, read again, merged as an overwrite, and searched.
	var file bytes.Buffer
	if err := got.Write(&file); err != nil {
		t.Fatal(err)
	}
	overwrite, err := Read(file.Bytes())
	if err != nil {
		t.Fatalf("read back: %v\n%s", err, &file)
	}
	for version, want := range map[string]string{
		"1.36.3": "registry.k8s.io/kube-proxy:v1.36.3@" + digestOf("2"),
		"1.37.0": "registry.k8s.io/kube-proxy:v1.37.0",
	} {
		image, err := vector.Overwrite(overwrite).Find("kube-proxy", Query{TargetVersion: version})
		checkError(t, err, "")
		if image.String() != want {
			t.Errorf("kube-proxy for %s is %s, want %s", version, image, want)
		}
	}
}

func TestPinDigestsRefuses(t *testing.T) {
	vector := Vector{{Name: "a", Repository: new("r"), Tag: new("v1")}}
	_, err := PinDigests(vector, nil, func(string) (string, error) { return "sha256:12", nil })
	checkError(t, err, `digest of r:v1: "sha256:12" is not sha256: followed by 64 hexadecimal digits`)
	_, err = PinDigests(vector, nil, func(string) (string, error) { return "", errors.New("cache is locked") })
	checkError(t, err, "digest of r:v1: cache is locked")
}

// checkError wants no error for "", and otherwise one that contains the text: users of these files only see the text.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Fatalf("unexpected error: %v", err)
	case want != "" && err == nil:
		t.Fatalf("no error, want %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Fatalf("error is\n%s\nwant\n%s", err, want)
	}
}

func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
