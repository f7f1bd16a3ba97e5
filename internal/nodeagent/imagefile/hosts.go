// Package imagefile extracts single files from container images.
//
// Images are pulled from registries without containerd, which are configured as for containerd: by the files in /etc/containerd/certs.d.
// Only the files are written to the machine; an image that no pod needs takes no space in containerd.
package imagefile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/pkg/containerd"
)

// headersWithin is how long a registry may take to begin its response, after which the next one is tried.
const headersWithin = 30 * time.Second

// probeTimeout is how long a mirror may take to answer a probe.
const probeTimeout = 10 * time.Second

// source is a registry that may have an image.
type source struct {
	reference name.Reference
	transport http.RoundTripper
}

// host is a section of a hosts.toml file, with the fields that matter for pulling.
type host struct {
	Capabilities []string       `toml:"capabilities"`
	OverridePath bool           `toml:"override_path"`
	SkipVerify   bool           `toml:"skip_verify"`
	CA           any            `toml:"ca"`
	Header       map[string]any `toml:"header"`
	url          string
}

// hostsFile is a hosts.toml file.
type hostsFile struct {
	Server string          `toml:"server"`
	Host   map[string]host `toml:"host"`
}

// sources returns the registries that may have an image, in the order in which they are tried. It may return some, and an error about
// invalid ones.
func sources(root rootfs.Dir, image string) ([]source, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", image, err)
	}
	registry := reference.Context().RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io" // index.docker.io is what only this library calls it
	}
	var hosts []host
	var server bool
	var dir string
	names := []string{registry, "_default"}
	if colon := strings.LastIndex(registry, ":"); colon > 0 {
		names = slices.Insert(names, 0, registry[:colon]+"_"+registry[colon+1:]+"_") // as in containerd
	}
	for _, name := range names {
		dir = containerd.CertsDir + "/" + name
		data, err := root.Read(dir + "/hosts.toml")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if hosts, server, err = parseHosts(data); err != nil {
			return nil, fmt.Errorf("read %s/hosts.toml: %w", dir, err)
		}
		break
	}
	var found []source
	var errs []error
	for _, h := range hosts {
		s, err := h.source(root, dir, reference)
		errs = append(errs, err)
		if s != nil {
			found = append(found, *s)
		}
	}
	if !server {
		found = append(found, source{reference, encrypted{transport(nil)}})
	}
	return found, errors.Join(errs...)
}

// parseHosts returns the hosts in the order of the file, the server last, if the file has one; and whether it has one.
func parseHosts(data []byte) (hosts []host, server bool, err error) {
	var file hostsFile
	meta, err := toml.Decode(string(data), &file)
	if err != nil {
		return nil, false, err
	}
	for _, key := range meta.Keys() {
		if len(key) != 2 || key[0] != "host" {
			continue
		}
		h := file.Host[key[1]]
		h.url = key[1]
		hosts = append(hosts, h)
	}
	if file.Server != "" {
		hosts = append(hosts, host{url: file.Server})
	}
	return hosts, file.Server != "", nil
}

// source returns where a host has an image, nil if images cannot be pulled from it. dir is the directory with the host's hosts.toml.
func (h host) source(root rootfs.Dir, dir string, image name.Reference) (*source, error) {
	if h.Capabilities != nil && !slices.Contains(h.Capabilities, "pull") {
		return nil, nil
	}
	// A tag has to be resolved.
	if _, tagged := image.(name.Tag); tagged && h.Capabilities != nil && !slices.Contains(h.Capabilities, "resolve") {
		return nil, nil
	}
	address := h.url
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("registry host %q: %w", h.url, err)
	}
	path := strings.Trim(parsed.Path, "/")
	if h.OverridePath {
		var ok bool
		if path, ok = strings.CutPrefix(path+"/", "v2/"); !ok {
			return nil, nil // the library only finds a registry's API below /v2/
		}
		path = strings.Trim(path, "/")
	}
	repository := image.Context().RepositoryStr()
	if path != "" {
		repository = path + "/" + repository
	}
	var options []name.Option
	if parsed.Scheme == "http" {
		options = append(options, name.Insecure)
	}
	// Parsing a whole reference would take a host without a dot for the first part of a repository.
	registry, err := name.NewRegistry(parsed.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("registry host %q: %w", h.url, err)
	}
	var reference name.Reference = registry.Repo(repository).Tag(image.Identifier())
	if _, ok := image.(name.Digest); ok {
		reference = registry.Repo(repository).Digest(image.Identifier())
	}
	caPool, err := caPool(root, dir, h.caFiles())
	if err != nil {
		return nil, fmt.Errorf("registry host %q: %w", h.url, err)
	}
	// Verification is only skipped if hosts.toml says so, and so is TLS.
	t := transport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: caPool, InsecureSkipVerify: h.SkipVerify})
	if parsed.Scheme != "http" {
		t = encrypted{t}
	}
	header, err := h.header()
	if err != nil {
		return nil, fmt.Errorf("registry host %q: %w", h.url, err)
	}
	if len(header) > 0 {
		t = withHeader{t, registry.RegistryStr(), header}
	}
	return &source{reference, t}, nil
}

func (h host) caFiles() []string {
	var files []string
	switch ca := h.CA.(type) {
	case string:
		files = []string{ca}
	case []any:
		for _, file := range ca {
			if file, ok := file.(string); ok {
				files = append(files, file)
			}
		}
	}
	return files
}

// header returns the header fields for requests to the host.
func (h host) header() (http.Header, error) {
	header := http.Header{}
	for key, field := range h.Header {
		values, ok := field.([]any)
		if !ok {
			values = []any{field}
		}
		for _, value := range values {
			text, ok := value.(string)
			if !ok {
				return nil, fmt.Errorf("value of header field %q is no string", key)
			}
			header.Add(key, text)
		}
	}
	return header, nil
}

// caPool returns the CA certificates of the system and those in files, nil if there are no files. Relative paths start in the directory of
// hosts.toml.
func caPool(root rootfs.Dir, dir string, files []string) (*x509.CertPool, error) {
	if len(files) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, file := range files {
		if !path.IsAbs(file) {
			file = path.Join(dir, file)
		}
		pem, err := root.Read(file)
		if err != nil {
			return nil, err
		}
		pool.AppendCertsFromPEM(pem)
	}
	return pool, nil
}

// Probe returns an error if a mirror of a registry does not respond; any response is a success. It trusts the CA certificates that containerd
// will trust.
func Probe(ctx context.Context, root rootfs.Dir, registry string, mirror extensionsv1alpha1.RegistryHost) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	caPool, err := caPool(root, containerd.CertsDir+"/"+registry, mirror.CACerts)
	if err != nil {
		return fmt.Errorf("registry host %q: %w", mirror.URL, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, mirror.URL, http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{Transport: transport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: caPool})}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// encrypted refuses plain HTTP. The library falls back to it for private and local addresses if TLS does not work, and an attacker in the network can
// see to that.
type encrypted struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (e encrypted) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == "http" {
		return nil, fmt.Errorf("plain HTTP to %s is refused, as no URL in hosts.toml that begins with http:// allows it", request.URL.Host)
	}
	return e.RoundTripper.RoundTrip(request)
}

// withHeader adds header fields to requests to a host. They may be credentials, so no other host gets them that it redirects to.
type withHeader struct {
	http.RoundTripper
	host   string
	header http.Header
}

// RoundTrip implements http.RoundTripper.
func (w withHeader) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host == w.host {
		request = request.Clone(request.Context())
		for key, values := range w.header {
			// What the library sets stays, as with containerd: it is about this request.
			if _, ok := request.Header[key]; !ok || key == "User-Agent" {
				request.Header[key] = values
			}
		}
	}
	return w.RoundTripper.RoundTrip(request)
}

func transport(config *tls.Config) http.RoundTripper {
	t := remote.DefaultTransport.(*http.Transport).Clone() // documented to be one
	t.ResponseHeaderTimeout = headersWithin
	t.DisableKeepAlives = true // requests are rare, and connections cost memory
	if config != nil {
		t.TLSClientConfig = config
	}
	return t
}
