package imagefile

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/pkg/containerd"
)

// layer has files by name. A content that starts with "->" is a link.
func layer(t *testing.T, files ...string) v1.Layer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, file := range files {
		name, content, _ := strings.Cut(file, "=")
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if target, ok := strings.CutPrefix(content, "->"); ok {
			header.Typeflag, header.Linkname, header.Size, content = tar.TypeSymlink, target, 0, ""
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestExtract(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	image, err := mutate.AppendLayers(empty.Image, layer(t, "usr/bin/a=old", "usr/bin/z=z"), layer(t, "usr/bin/a=->all", "usr/bin/all=all", "usr/bin/b=->/usr/bin/all", "usr/bin/c=->z"))
	if err != nil {
		t.Fatal(err)
	}
	target, err := name.ParseReference(host + "/example.com/tools:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, image); err != nil {
		t.Fatal(err)
	}
	root := rootfs.Dir(t.TempDir())
	hosts := fmt.Sprintf("server = %q\n[host.%q]\noverride_path = true\n", "http://127.0.0.1:1", server.URL+"/v2/example.com")
	if err := root.Write(containerd.CertsDir+"/example.com/hosts.toml", []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}
	replacements := 0
	replaced := func() error { replacements++; return nil }
	err = Extract(t.Context(), root, "example.com/tools:v1", []File{
		{InImage: "/usr/bin/a", Path: "/opt/bin/a", Mode: 0o755},
		{InImage: "/usr/bin/b", Path: "/opt/bin/b", Mode: 0o755},
		{InImage: "/usr/bin/c", Path: "/opt/c", Mode: 0o600},
		{InImage: "/usr/bin/a", Path: "/opt/bin/private", Mode: 0o700},
	}, replaced)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/opt/bin/a": "-rwxr-xr-x all", "/opt/bin/b": "-rwxr-xr-x all", "/opt/c": "-rw------- z", "/opt/bin/private": "-rwx------ all"} {
		info, err := os.Stat(root.Path(path))
		if err != nil {
			t.Fatal(err)
		}
		data, err := root.Read(path)
		if got := fmt.Sprintf("%s %s", info.Mode(), data); got != want || err != nil {
			t.Errorf("%s is %q, %v; want %q", path, got, err, want)
		}
	}
	if replacements == 0 {
		t.Error("files were replaced without a call before")
	}
	if err := Extract(t.Context(), root, "example.com/tools:v1", []File{{InImage: "/none", Path: "/none"}}, replaced); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that the image does not have: %v", err)
	}
	if err := Extract(t.Context(), root, "example.com/none:v1", nil, replaced); err == nil {
		t.Error("an image that does not exist is no error")
	}
}

func TestExtractOnlyWhatTheImageSays(t *testing.T) {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	good := httptest.NewServer(images)
	t.Cleanup(good.Close)
	// The file comes before the end of a layer that is not compressed, so that only the digest at the end shows another content.
	raw, err := layer(t, "bin/a=good", "bin/z=z").Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(raw)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer(data, types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	target, err := name.ParseReference(strings.TrimPrefix(good.URL, "http://") + "/tools:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, image); err != nil {
		t.Fatal(err)
	}
	evil := func(w http.ResponseWriter, blob []byte) {
		_, _ = w.Write(bytes.ReplaceAll(blob, []byte("good"), []byte("evil")))
	}
	for text, tc := range map[string]struct {
		blob   func(w http.ResponseWriter, blob []byte) // what the mirror answers when it is asked for one
		mirror string                                   // more about it
		server string
		want   string // of the file
	}{
		"a mirror with another blob":     {blob: evil, server: good.URL, want: "good"},
		"a mirror without the blob":      {blob: func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusNotFound) }, server: good.URL, want: "good"},
		"a mirror whose CA is missing":   {mirror: "ca = '/none'", server: good.URL, want: "good"},
		"no registry has the right blob": {blob: evil, server: "http://127.0.0.1:1", want: "before"},
	} {
		t.Run(text, func(t *testing.T) {
			mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					images.ServeHTTP(w, r)
					return
				}
				answer := httptest.NewRecorder()
				images.ServeHTTP(answer, r)
				tc.blob(w, answer.Body.Bytes())
			}))
			t.Cleanup(mirror.Close)
			root := rootfs.Dir(t.TempDir())
			hosts := fmt.Sprintf("server = %q\n[host.%q]\n%s\n", tc.server, mirror.URL, tc.mirror)
			if err := errors.Join(root.Write(containerd.CertsDir+"/example.com/hosts.toml", []byte(hosts), 0o644), root.Write("/bin/a", []byte("before"), 0o755)); err != nil {
				t.Fatal(err)
			}
			err := Extract(t.Context(), root, "example.com/tools:v1", []File{{InImage: "/bin/a", Path: "/bin/a", Mode: 0o755}}, func() error { return nil })
			if failed := tc.want == "before"; failed != (err != nil) {
				t.Errorf("error is %v", err)
			}
			if got, err := root.Read("/bin/a"); string(got) != tc.want || err != nil {
				t.Errorf("file is %q, %v; want %q", got, err, tc.want)
			}
			if entries, err := os.ReadDir(root.Path("/bin")); len(entries) != 1 || err != nil {
				t.Errorf("there are %v, %v", entries, err)
			}
		})
	}
}

func TestCACertificatesOfARegistry(t *testing.T) {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	plain, server := httptest.NewServer(images), httptest.NewUnstartedServer(images)
	t.Cleanup(plain.Close)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	image, err := mutate.AppendLayers(empty.Image, layer(t, "bin/a=a"))
	if err != nil {
		t.Fatal(err)
	}
	target, err := name.ParseReference(strings.TrimPrefix(plain.URL, "http://") + "/tools:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, image); err != nil {
		t.Fatal(err)
	}
	caBundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for text, tc := range map[string]struct {
		file    string
		trusted bool
	}{
		"it is unknown":            {},
		"it does not exist yet":    {file: "/etc/none"},
		"a file":                   {file: "/etc/ca.crt", trusted: true},
		"a file beside hosts.toml": {file: "ca.crt", trusted: true},
	} {
		t.Run(text, func(t *testing.T) {
			root := rootfs.Dir(t.TempDir())
			mirror := extensionsv1alpha1.RegistryHost{URL: server.URL}
			hosts := fmt.Sprintf("server = 'http://127.0.0.1:1'\n[host.%q]\n", server.URL)
			if tc.file != "" {
				mirror.CACerts = []string{tc.file}
				hosts += fmt.Sprintf("ca = %q\n", tc.file)
			}
			for path, data := range map[string]string{"/etc/ca.crt": string(caBundle), containerd.CertsDir + "/example.com/ca.crt": string(caBundle), containerd.CertsDir + "/example.com/hosts.toml": hosts} {
				if err := root.Write(path, []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := Probe(t.Context(), root, "example.com", mirror); tc.trusted != (err == nil) {
				t.Errorf("Probe() = %v", err)
			}
			err := Extract(t.Context(), root, "example.com/tools:v1", []File{{InImage: "/bin/a", Path: "/bin/a", Mode: 0o755}}, func() error { return nil })
			if tc.trusted != (err == nil) {
				t.Errorf("Extract() = %v", err)
			}
		})
	}
}

// The library would fall back to plain HTTP for the address of the test.
func TestPlainHTTPIsOnlyUsedIfHostsSaySo(t *testing.T) {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	plain := httptest.NewServer(images)
	t.Cleanup(plain.Close)
	redirecting := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	redirecting.Config.ErrorLog = log.New(io.Discard, "", 0)
	redirecting.StartTLS()
	t.Cleanup(redirecting.Close)
	image, err := mutate.AppendLayers(empty.Image, layer(t, "bin/a=a"))
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(plain.URL, "http://")
	target, err := name.ParseReference(address + "/tools:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, image); err != nil {
		t.Fatal(err)
	}
	for text, tc := range map[string]struct {
		registry, hosts string
		found           bool
	}{
		"nothing says so":               {registry: address},
		"a host with TLS":               {registry: "example.com", hosts: fmt.Sprintf("server = 'http://127.0.0.1:1'\n[host.'https://%s']\n", address)},
		"a host that skips verifying":   {registry: "example.com", hosts: fmt.Sprintf("server = 'http://127.0.0.1:1'\n[host.'https://%s']\nskip_verify = true\n", address)},
		"a server without a scheme":     {registry: "example.com", hosts: fmt.Sprintf("server = %q\n", address)},
		"a server that redirects to it": {registry: "example.com", hosts: fmt.Sprintf("server = 'http://127.0.0.1:1'\n[host.%q]\nskip_verify = true\n", redirecting.URL)},
		"a host without TLS":            {registry: "example.com", hosts: fmt.Sprintf("server = 'http://127.0.0.1:1'\n[host.'http://%s']\n", address), found: true},
		"a server without TLS":          {registry: "example.com", hosts: fmt.Sprintf("server = 'http://%s'\n", address), found: true},
	} {
		t.Run(text, func(t *testing.T) {
			root := rootfs.Dir(t.TempDir())
			if tc.hosts != "" {
				if err := root.Write(containerd.CertsDir+"/"+tc.registry+"/hosts.toml", []byte(tc.hosts), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := Extract(t.Context(), root, tc.registry+"/tools:v1", []File{{InImage: "/bin/a", Path: "/bin/a", Mode: 0o755}}, func() error { return nil })
			if found := root.Exists("/bin/a"); found != tc.found || found != (err == nil) {
				t.Errorf("the file was extracted: %v, want %v; Extract() = %v", found, tc.found, err)
			}
		})
	}
}

func TestHeaderOfAHost(t *testing.T) {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	plain := httptest.NewServer(images)
	t.Cleanup(plain.Close)
	image, err := mutate.AppendLayers(empty.Image, layer(t, "bin/a=a"))
	if err != nil {
		t.Fatal(err)
	}
	target, err := name.ParseReference(strings.TrimPrefix(plain.URL, "http://") + "/tools:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(target, image); err != nil {
		t.Fatal(err)
	}
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "" {
			t.Error("the header field is sent to another host")
		}
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(storage.Close)
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Key") != "secret" || r.Header.Get("User-Agent") != "node" || len(r.Header["X-List"]) != 2:
			w.WriteHeader(http.StatusForbidden)
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, storage.URL+r.URL.Path, http.StatusTemporaryRedirect)
		default:
			images.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(mirror.Close)
	for text, tc := range map[string]struct {
		header string
		found  bool
	}{
		"as needed":        {header: "x-key = 'secret'\nUser-Agent = 'node'\nx-list = ['a', 'b']", found: true},
		"another value":    {header: "x-key = 'wrong'\nUser-Agent = 'node'\nx-list = ['a', 'b']"},
		"no string":        {header: "x-key = 'secret'\nUser-Agent = 'node'\nx-list = ['a', 'b', 1]"},
		"no list of those": {header: "x-key = 'secret'\nUser-Agent = 'node'\nx-list = ['a', 'b']\nother = 1"},
	} {
		t.Run(text, func(t *testing.T) {
			root := rootfs.Dir(t.TempDir())
			hosts := fmt.Sprintf("server = 'http://127.0.0.1:1'\n[host.%[1]q]\n[host.%[1]q.header]\n%[2]s\n", mirror.URL, tc.header)
			if err := root.Write(containerd.CertsDir+"/example.com/hosts.toml", []byte(hosts), 0o644); err != nil {
				t.Fatal(err)
			}
			err := Extract(t.Context(), root, "example.com/tools:v1", []File{{InImage: "/bin/a", Path: "/bin/a", Mode: 0o755}}, func() error { return nil })
			if tc.found != (err == nil) {
				t.Errorf("Extract() = %v", err)
			}
		})
	}
}

func TestSources(t *testing.T) {
	for text, tc := range map[string]struct {
		image, file, hosts string
		other              string // a file that does not count
		want               []string
	}{
		"no file":    {image: "example.com/app:1", want: []string{"https://example.com/v2/ app:1"}},
		"Docker Hub": {image: "busybox", file: "docker.io", hosts: `[host."https://m.example.com"]`, want: []string{"https://m.example.com/v2/ library/busybox:latest", "https://index.docker.io/v2/ library/busybox:latest"}},
		"in the order of the file": {
			image: "example.com/app:1", file: "example.com",
			hosts: "server = 'https://s'\n[host.'http://b/v2/x']\noverride_path = true\n[host.'http://a']\n",
			want:  []string{"http://b/v2/ x/app:1", "http://a/v2/ app:1", "https://s/v2/ app:1"},
		},
		"hosts that only take images, or do not know tags": {
			image: "example.com/app:1", file: "example.com", hosts: "[host.'http://push']\ncapabilities = ['push']\n[host.'http://pull']\ncapabilities = ['pull']\n",
			want: []string{"https://example.com/v2/ app:1"},
		},
		"a digest needs no resolving": {
			image: "example.com/app@sha256:" + strings.Repeat("a", 64), file: "example.com", hosts: "[host.'http://pull']\ncapabilities = ['pull']\n",
			want: []string{"http://pull/v2/ app@sha256:" + strings.Repeat("a", 64), "https://example.com/v2/ app@sha256:" + strings.Repeat("a", 64)},
		},
		"with a port": {image: "example.com:5000/app:1", file: "example.com:5000", hosts: "[host.'http://m']", other: "_default", want: []string{"http://m/v2/ app:1", "https://example.com:5000/v2/ app:1"}},
		"with a port, as containerd prefers it": {
			image: "example.com:5000/app:1", file: "example.com_5000_", hosts: "[host.'http://m']", other: "example.com:5000",
			want: []string{"http://m/v2/ app:1", "https://example.com:5000/v2/ app:1"},
		},
		"for all registries": {image: "example.com/app:1", file: "_default", hosts: "[host.'http://m']", want: []string{"http://m/v2/ app:1", "https://example.com/v2/ app:1"}},
	} {
		t.Run(text, func(t *testing.T) {
			root := rootfs.Dir(t.TempDir())
			if tc.file != "" {
				if err := root.Write(containerd.CertsDir+"/"+tc.file+"/hosts.toml", []byte(tc.hosts), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if tc.other != "" {
				if err := root.Write(containerd.CertsDir+"/"+tc.other+"/hosts.toml", []byte("[host.'http://other']"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			found, err := sources(root, tc.image)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range found {
				repository := s.reference.Context()
				separator := ":"
				if _, ok := s.reference.(name.Digest); ok {
					separator = "@"
				}
				got = append(got, repository.Scheme()+"://"+repository.RegistryStr()+"/v2/ "+repository.RepositoryStr()+separator+s.reference.Identifier())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("sources() (-want +got):\n%s", diff)
			}
		})
	}
}
