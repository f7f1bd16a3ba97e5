// Package imagefile takes single files out of container images.
//
// Images come straight from registries, which are found as containerd finds them: by the files in /etc/containerd/certs.d. What is
// written to the machine is the file alone; an image that nothing else needs takes no room in containerd.
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
)

// CertsDir is where containerd is told about registries.
const CertsDir = "/etc/containerd/certs.d"

// headersWithin is how long a registry may take to begin its answer, after which the next one is asked.
const headersWithin = 30 * time.Second

// probeTimeout is how long a mirror may take to answer a probe.
const probeTimeout = 10 * time.Second

// source is a place where an image may be.
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

// sources returns where to look for an image, best first. It may return some and an error that says what is wrong with others.
func sources(root rootfs.Dir, image string) ([]source, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, fmt.Errorf("image %q: %w", image, err)
	}
	registry := reference.Context().RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io" // index.docker.io is only this library's name for it
	}
	var hosts []host
	var server bool
	var dir string
	for _, name := range []string{registry, strings.ReplaceAll(registry, ":", "_"), "_default"} {
		dir = CertsDir + "/" + name
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
		found = append(found, source{reference, transport(nil)})
	}
	return found, errors.Join(errs...)
}

// parseHosts returns the hosts in the order of the file, and the server, if there is one, last; and whether there is one.
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

// source is where a host has an image, or nil if images cannot be pulled from it. The host is in the hosts.toml of a directory.
func (h host) source(root rootfs.Dir, dir string, image name.Reference) (*source, error) {
	if h.Capabilities != nil && !slices.Contains(h.Capabilities, "pull") {
		return nil, nil
	}
	// A tag means what a host that may not resolve tags does not know.
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
			return nil, nil // a registry's API anywhere else is out of reach for the library
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
	// Not by parsing a whole reference, which takes a host without a dot for the beginning of a repository.
	registry, err := name.NewRegistry(parsed.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("registry host %q: %w", h.url, err)
	}
	var reference name.Reference = registry.Repo(repository).Tag(image.Identifier())
	if _, ok := image.(name.Digest); ok {
		reference = registry.Repo(repository).Digest(image.Identifier())
	}
	authorities, err := authorities(root, dir, h.caFiles())
	if err != nil {
		return nil, fmt.Errorf("registry host %q: %w", h.url, err)
	}
	// As the machine's configuration says.
	return &source{reference, transport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities, InsecureSkipVerify: h.SkipVerify})}, nil
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

// authorities returns those of the system and those in files, or nil if there are no files. A relative path starts beside hosts.toml.
func authorities(root rootfs.Dir, dir string, files []string) (*x509.CertPool, error) {
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

// Probe asks a mirror of a registry whether it is there; what it answers does not matter. It trusts the authorities that containerd will
// trust.
func Probe(ctx context.Context, root rootfs.Dir, registry string, mirror extensionsv1alpha1.RegistryHost) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	authorities, err := authorities(root, CertsDir+"/"+registry, mirror.CACerts)
	if err != nil {
		return fmt.Errorf("registry host %q: %w", mirror.URL, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, mirror.URL, http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{Transport: transport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities})}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func transport(config *tls.Config) http.RoundTripper {
	t := remote.DefaultTransport.(*http.Transport).Clone() // it is one
	t.ResponseHeaderTimeout = headersWithin
	t.DisableKeepAlives = true // these are rare, and connections cost memory
	if config != nil {
		t.TLSClientConfig = config
	}
	return t
}
