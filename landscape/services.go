package landscape

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"gardener.cloud/gardener/landscape/addon"
	"gardener.cloud/gardener/landscape/containers"
	"gardener.cloud/gardener/landscape/host"
)

const (
	// RegistryHost is the name of the landscape's registry in machines. Gardener's own images have it.
	RegistryHost = "registry.local.gardener.cloud"
	registryPort = 5000

	registryContainer = "registry"
	pushContainer     = "registry-push"
	resolverContainer = "resolver"
)

// registryAddress is the address of the registry, for the host and for machines.
func (l *Landscape) registryAddress() netip.AddrPort {
	return netip.AddrPortFrom(l.network().Gateway(), registryPort)
}

// RegistryValues say how a registry serves its images.
type RegistryValues struct {
	// Storage is the directory of the images.
	Storage string
	// Net and Address are where it listens: "tcp" with a host and a port, or "unix" with the path of a socket.
	Net, Address string
	// ReadOnly refuses pushes. Deletions are refused always.
	ReadOnly bool
}

// RegistryConfig renders the configuration of a registry.
func RegistryConfig(v RegistryValues) string {
	return fmt.Sprintf(`version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %s}
  delete: {enabled: false}
  maintenance: {readonly: {enabled: %t}}
http:
  net: %s
  addr: %s
`, v.Storage, v.ReadOnly, v.Net, v.Address)
}

// ensureRegistry runs the registry that all machines pull from, and the one that this computer pushes to. They share the images. What runs on
// machines reaches the first one only, so no pod can replace an image that other pods run, or delete one.
func (l *Landscape) ensureRegistry(ctx context.Context, client *containers.Client, image string) error {
	const storage, socketDir = "/var/lib/registry", "/run/registry"
	dir := filepath.Join(l.Dir, "registry")
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.pushSocket()), 0o700); err != nil {
		return err
	}
	for _, registry := range []struct {
		name   string
		values RegistryValues
		mounts []specs.Mount
	}{
		{registryContainer, RegistryValues{Storage: storage, Net: "tcp", Address: l.registryAddress().String(), ReadOnly: true}, []specs.Mount{
			bind(data, storage, "ro"),
		}},
		{pushContainer, RegistryValues{Storage: storage, Net: "unix", Address: socketDir + "/" + filepath.Base(l.pushSocket())}, []specs.Mount{
			bind(data, storage, "rw"), bind(filepath.Dir(l.pushSocket()), socketDir, "rw"),
		}},
	} {
		config, content := filepath.Join(dir, registry.name+".yml"), RegistryConfig(registry.values)
		if err := host.WriteFile(config, []byte(content), 0o644); err != nil {
			return err
		}
		if err := client.Ensure(ctx, containers.Container{
			Name: registry.name, Image: image, Args: []string{"serve", "/etc/distribution/config.yml"},
			Log: l.logFile(registry.name), Network: l.network().NamespacePath(), Cgroup: l.cgroup() + "/" + registry.name,
			Mounts: append(registry.mounts, bind(config, "/etc/distribution/config.yml", "ro")), Revision: content,
		}); err != nil {
			return err
		}
	}
	return nil
}

// pushSocket is where images are pushed to. Only root of this computer reaches it.
func (l *Landscape) pushSocket() string { return filepath.Join(l.runDir(), "registry", "push.sock") }

// ensureResolver runs the resolver of the machines. It serves the landscape's own names and forwards the rest to the host's resolvers;
// without any it answers NXDOMAIN at once, because a query that times out stalls a kubelet for minutes.
func (l *Landscape) ensureResolver(ctx context.Context, client *containers.Client, image string) error {
	corefile := filepath.Join(l.Dir, "resolver", "Corefile")
	content := l.corefile(l.network().Resolvers)
	if err := host.WriteFile(corefile, []byte(content), 0o644); err != nil {
		return err
	}
	return client.Ensure(ctx, containers.Container{
		Name: resolverContainer, Image: image, Args: []string{"-conf", "/etc/coredns/Corefile"},
		Log: l.logFile(resolverContainer), Network: l.network().NamespacePath(), Cgroup: l.cgroup() + "/" + resolverContainer,
		Mounts:   []specs.Mount{bind(corefile, "/etc/coredns/Corefile", "ro")},
		Revision: content,
	})
}

func (l *Landscape) corefile(resolvers []netip.Addr) string {
	var hosts strings.Builder
	fmt.Fprintf(&hosts, "        %s %s\n", l.network().Gateway(), RegistryHost)
	machines := l.state.hosts()
	for _, cluster := range l.state.Clusters {
		machines = append(machines, cluster.Machines...)
	}
	for _, machine := range machines {
		fmt.Fprintf(&hosts, "        %s %s\n", l.network().Machine(machine.Number), machine.Name)
	}
	fallback := `    template ANY ANY {
        rcode NXDOMAIN
    }
`
	if len(resolvers) > 0 {
		servers := strings.Trim(fmt.Sprint(resolvers), "[]")
		fallback = fmt.Sprintf(`    forward . %s {
        max_concurrent 1000
    }
    cache 30
`, servers)
	}
	return l.zone(".", hosts.String()+"        ttl 30\n", fallback) + l.localZone()
}

// zone is what the resolver answers for names in a domain.
func (l *Landscape) zone(domain, hosts, fallback string) string {
	return fmt.Sprintf(`%s:53 {
    bind %s
    errors
    hosts {
%s        fallthrough
    }
%s}
`, domain, l.network().Gateway(), hosts, fallback)
}

// localZone has hosts resolve the names of their shoots, which the seeds serve. Machines of clusters do not need them.
func (l *Landscape) localZone() string {
	if l.state.Hosts == 0 {
		return ""
	}
	var servers []netip.AddrPort
	for _, cluster := range seedClusters(l.state.Clusters) {
		servers = append(servers, netip.AddrPortFrom(l.network().Machine(cluster.Machines[0].Number), localDNSNodePort))
	}
	return l.zone(addon.LocalZone, fmt.Sprintf("        %s %s\n", l.network().Gateway(), RegistryHost), addon.Forward(servers...))
}

// hostResolvers are the name servers of the host. A resolver on the host's loopback cannot be reached from the landscape's network, so
// its upstream servers are read from the file that systemd-resolved writes.
func hostResolvers(readFile func(string) ([]byte, error)) []netip.Addr {
	for _, file := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		data, err := readFile(file)
		if err != nil {
			continue
		}
		var resolvers []netip.Addr
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "nameserver" {
				continue
			}
			if addr, err := netip.ParseAddr(fields[1]); err == nil && addr.Is4() && !addr.IsLoopback() {
				resolvers = append(resolvers, addr)
			}
		}
		if len(resolvers) > 0 {
			return slices.Compact(resolvers)
		}
	}
	return nil
}

func (l *Landscape) logFile(name string) string { return filepath.Join(l.logDir(), name+".log") }

func bind(source, destination, mode string) specs.Mount {
	return specs.Mount{Type: "bind", Source: source, Destination: destination, Options: []string{"rbind", mode}}
}

func tmpfs(destination string, options ...string) specs.Mount {
	return specs.Mount{Type: "tmpfs", Source: "tmpfs", Destination: destination, Options: append([]string{"nosuid", "nodev"}, options...)}
}
