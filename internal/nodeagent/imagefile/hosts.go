// Package imagefile takes single files out of container images.
//
// Images come straight from registries, which are found as containerd finds them: by the files in /etc/containerd/certs.d. What is
// written to the machine is the file alone; an image that nothing else needs takes no room in containerd.
package imagefile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

// CertsDir is where containerd is told about registries.
const CertsDir = "/etc/containerd/certs.d"

// headersWithin is how long a registry may take to begin its answer, after which the next one is asked.
const headersWithin = 30 * time.Second

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
	for _, dir := range []string{registry, strings.ReplaceAll(registry, ":", "_"), "_default"} {
		data, err := root.Read(CertsDir + "/" + dir + "/hosts.toml")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if hosts, server, err = parseHosts(data); err != nil {
			return nil, fmt.Errorf("read %s/%s/hosts.toml: %w", CertsDir, dir, err)
		}
		break
	}
	var found []source
	var errs []error
	for _, h := range hosts {
		s, err := h.source(root, reference)
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

// source is where a host has an image, or nil if images cannot be pulled from it.
func (h host) source(root rootfs.Dir, image name.Reference) (*source, error) {
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
	config, err := h.tls(root)
	if err != nil {
		return nil, err
	}
	return &source{reference, transport(config)}, nil
}

func (h host) tls(root rootfs.Dir) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: h.SkipVerify} // as the machine's configuration says
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
	if len(files) == 0 {
		return config, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, file := range files {
		pem, err := root.Read(file)
		if err != nil {
			return nil, fmt.Errorf("registry host %q: %w", h.url, err)
		}
		pool.AppendCertsFromPEM(pem)
	}
	config.RootCAs = pool
	return config, nil
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
