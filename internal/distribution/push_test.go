package distribution

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v3/pkg/chart/loader"

	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/imagevector"
)

// pushTest is a checkout whose products are built, and a registry.
type pushTest struct {
	d        *Distribution
	push     Push
	progress bytes.Buffer
	writes   atomic.Int32
}

func newPushTest(t *testing.T) *pushTest {
	t.Helper()
	p := &pushTest{}
	files := tiny()
	files["base/product.yaml"] = "description: A base\nlicenses: MIT\nversion: v1\n"
	files["base/files/etc/base"] = "base\n"
	files["missing/product.yaml"] = "description: Not built\nlicenses: MIT\nversion: v1\n"
	root := checkout(t, files)
	write(t, filepath.Join(root, "VERSION"), "v1.2.3\n")
	write(t, filepath.Join(root, "bin", "gardener"), "#!/bin/sh\n")
	p.d = open(t, root, t.TempDir())
	if _, err := p.d.Build(t.Context(), NoProgress{}, "tiny", "base"); err != nil {
		t.Fatal(err)
	}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			p.writes.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	version, executable, err := p.d.Release()
	if err != nil {
		t.Fatal(err)
	}
	p.push = Push{Registry: strings.TrimPrefix(server.URL, "http://") + "/mirror", Version: version, Executable: executable, Progress: &p.progress}
	return p
}

func (p *pushTest) reference(t *testing.T, ref string) name.Reference {
	t.Helper()
	reference, err := name.ParseReference(p.push.Registry + "/" + ref)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

func TestPush(t *testing.T) {
	p := newPushTest(t)
	pushed, missing, err := p.d.Push(t.Context(), p.push)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Missing{{Product: "missing", Architecture: runtime.GOARCH}}, missing); diff != "" {
		t.Errorf("products that are not built (-want +got):\n%s", diff)
	}
	t.Run("images with what refers to them", func(t *testing.T) {
		for ref, product := range map[string]string{"example.com/tiny:v1.2.3": "tiny", "registry.local.gardener.cloud/gardener/gardener:v1.2.3": ""} {
			image, err := remote.Image(p.reference(t, ref))
			if err != nil {
				t.Fatal(err)
			}
			digest, err := image.Digest()
			if err != nil {
				t.Fatal(err)
			}
			index, err := remote.Referrers(p.reference(t, ref).Context().Digest(digest.String()))
			if err != nil {
				t.Fatal(err)
			}
			manifest, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			content := map[string][]byte{}
			for _, referrer := range manifest.Manifests {
				content[referrer.ArtifactType] = p.layer(t, ref, referrer.Digest.String())
			}
			if len(content) != 2 {
				t.Errorf("%s has referrers %v", ref, manifest.Manifests)
			}
			if !bytes.Contains(content["application/vnd.cyclonedx+json"], []byte(`"bomFormat": "CycloneDX"`)) {
				t.Errorf("%s has the SBOM %.100s", ref, content["application/vnd.cyclonedx+json"])
			}
			var got statement
			if err := json.Unmarshal(content["application/vnd.in-toto+json"], &got); err != nil {
				t.Fatal(err)
			}
			build := got.Predicate.BuildDefinition
			if got.Subject[0].Digest["sha256"] != digest.Hex || got.PredicateType != "https://slsa.dev/provenance/v1" ||
				build.ExternalParameters["version"] != "v1.2.3" || build.ExternalParameters["product"] != product || len(build.ResolvedDependencies) < 2 {
				t.Errorf("%s has the statement %s", ref, content["application/vnd.in-toto+json"])
			}
			if strings.Contains(string(content["application/vnd.in-toto+json"]), p.d.root) {
				t.Error("the statement has a path of this computer")
			}
		}
	})
	t.Run("charts that Helm reads", func(t *testing.T) {
		archive := p.layer(t, "charts/operator:v1.2.3", "")
		chart, err := loader.LoadArchive(bytes.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		image := chart.Values["image"].(map[string]any)
		if chart.Metadata.Version != "v1.2.3" || chart.Metadata.AppVersion != "v1.2.3" ||
			image["repository"] != p.push.Registry+"/registry.local.gardener.cloud/gardener/gardener" {
			t.Errorf("chart %+v has image %v", chart.Metadata, image)
		}
		pulled, err := remote.Image(p.reference(t, "charts/operator:v1.2.3"))
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := pulled.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if manifest.Config.MediaType != "application/vnd.cncf.helm.config.v1+json" {
			t.Errorf("the configuration has media type %s", manifest.Config.MediaType)
		}
		config, err := pulled.RawConfigFile()
		if err != nil || !bytes.Contains(config, []byte(`"name":"operator"`)) {
			t.Errorf("the configuration is %s, %v", config, err)
		}
	})
	t.Run("a file that names them", func(t *testing.T) {
		var file bytes.Buffer
		if err := pushed.Write(&file); err != nil {
			t.Fatal(err)
		}
		images, err := imagevector.Read(file.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, err := images.Find("gardener", imagevector.Query{})
		if err != nil {
			t.Fatal(err)
		}
		reference, err := name.ParseReference(got.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Head(reference); err != nil || !strings.HasPrefix(got.String(), p.push.Registry+"/registry.local") {
			t.Errorf("image %s: %v", got, err)
		}
		for _, chart := range pushed.Charts {
			reference, err := name.ParseReference(*chart.Ref)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := remote.Head(reference); err != nil || !strings.Contains(*chart.Ref, "/charts/"+chart.Name+":v1.2.3@sha256:") {
				t.Errorf("chart %s: %v", *chart.Ref, err)
			}
		}
		if len(pushed.Charts) != len(charts.Names()) {
			t.Errorf("there are charts %v", pushed.Charts)
		}
	})
	t.Run("nothing the second time", func(t *testing.T) {
		before := p.writes.Load()
		p.progress.Reset()
		if _, _, err := p.d.Push(t.Context(), p.push); err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.d.Push(t.Context(), p.push, "tiny", "tiny"); err != nil {
			t.Fatal(err)
		}
		if after := p.writes.Load(); after != before || strings.Contains(p.progress.String(), "pushed") {
			t.Errorf("the second push wrote %d times:\n%s", after-before, p.progress.String())
		}
	})
}

// layer returns the only layer of an artifact, by a digest or the tag of the reference.
func (p *pushTest) layer(t *testing.T, ref, digest string) []byte {
	t.Helper()
	reference := p.reference(t, ref)
	if digest != "" {
		reference = reference.Context().Digest(digest)
	}
	image, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%s has layers %v, %v", reference, layers, err)
	}
	reader, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestPushRefuses(t *testing.T) {
	p := newPushTest(t)
	for what, tc := range map[string]struct {
		change func(*Push)
		refs   []string
		want   string
	}{
		"a product that is not built": {refs: []string{"missing"}, want: "missing is not built; run: bin/distribution build missing"},
		"an unknown product":          {refs: []string{"x"}, want: `unknown product "x"`},
		"no executable":               {change: func(p *Push) { p.Executable += "x" }, want: "build it with: make build"},
		"a registry without a host":   {change: func(p *Push) { p.Registry = "gardener" }, want: "begin with a host"},
		"an invalid registry":         {change: func(p *Push) { p.Registry = "example.com/A B" }, want: `registry "example.com/A B"`},
		"a registry that is away":     {change: func(p *Push) { p.Registry = "127.0.0.1:1" }, want: "look up 127.0.0.1:1/"},
	} {
		t.Run(what, func(t *testing.T) {
			push := p.push
			if tc.change != nil {
				tc.change(&push)
			}
			_, _, err := p.d.Push(t.Context(), push, tc.refs...)
			wantError(t, err, tc.want)
		})
	}
}

// Of an image with a tag of its own and of one for several versions of Kubernetes, each is pinned.
func TestOverwrite(t *testing.T) {
	a, b, c := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64), "sha256:"+strings.Repeat("c", 64)
	vector := imagevector.Vector{
		{Name: "pause", Repository: new("registry.k8s.io/pause"), Tag: new("3.10")},
		{Name: "kube-proxy", Repository: new("registry.k8s.io/kube-proxy")},
		{Name: "machine", Repository: new("registry.local/machine")},
		{Name: "absent", Repository: new("registry.local/absent")},
	}
	got, err := overwrite(vector, "localhost:5000/m", []string{"v1.36.3"}, map[string]string{
		"registry.k8s.io/pause:3.10": a, "registry.k8s.io/kube-proxy:v1.36.3": b, "registry.local/machine": c,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"localhost:5000/m/registry.k8s.io/pause:3.10@" + a,
		"localhost:5000/m/registry.k8s.io/kube-proxy:v1.36.3@" + b,
		"localhost:5000/m/registry.local/machine@" + c,
	}
	for i, query := range []struct{ name, version string }{{"pause", ""}, {"kube-proxy", "1.36.3"}, {"machine", ""}} {
		image, err := got.Find(query.name, imagevector.Query{TargetVersion: query.version})
		if err != nil || image.String() != want[i] {
			t.Errorf("image %s is %s, %v, want %s", query.name, image, err, want[i])
		}
	}
	if len(got) != 3 || got[1].TargetVersion == nil {
		t.Errorf("the entries are %+v", got)
	}
	if *vector[0].Repository != "registry.k8s.io/pause" {
		t.Error("the vector of the release has changed")
	}
}
