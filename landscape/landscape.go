// Package landscape runs a garden, seeds and shoots on one computer without Docker or an image registry on the internet: machines
// that are containers with systemd, a registry and a resolver they share, and Kubernetes clusters created from them with
// kubeadm. It owns a directory per landscape, a directory below /run, one network namespace per machine, and a containerd
// of its own; it changes nothing else on the host.
package landscape

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"gardener.cloud/gardener/landscape/host"
)

const (
	// DefaultName is the landscape that commands use when none is named.
	DefaultName = "local"
	// RuntimeCluster is the first cluster of every landscape. gardener-operator runs the garden in it, and it is the first seed.
	RuntimeCluster = "runtime"
	// VirtualGarden is the cluster that serves the garden API. Its control plane runs in the runtime cluster.
	VirtualGarden = "garden"

	// runRoot holds a directory per running landscape. It is empty after a reboot, like the network it describes.
	runRoot = "/run/gardener-landscape"
)

// namePattern keeps names short enough for host names, interfaces, and socket paths.
var namePattern = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`)

// Landscape is one local landscape: its desired state, and where its files are.
type Landscape struct {
	// Name tells landscapes apart that run side by side.
	Name string
	// Dir holds what outlives a reboot: the landscape's state, data, logs and kubeconfigs.
	Dir string

	state  state
	damage error // a *DamagedError, or nil
	lock   *os.File
}

// state is what `up` was run with, and the numbers that were assigned.
type state struct {
	// Index is this landscape's number on the host. See host.Network.
	Index int `json:"index"`
	// Clusters are ordered by Number; the runtime cluster is the first.
	Clusters []Cluster `json:"clusters"`
	// VirtualGarden says that the landscape has a garden.
	VirtualGarden bool `json:"virtualGarden,omitempty"`
	// Hosts is the number of servers that belong to no cluster, for provider-hosts.
	Hosts int `json:"hosts,omitempty"`
	// Image identifies the images with which the reconciliation of all shoots was requested, empty without a garden.
	Image string `json:"image,omitempty"`
}

// Cluster is one Kubernetes cluster of a landscape.
type Cluster struct {
	// Name is unique in the landscape, such as "runtime".
	Name string `json:"name"`
	// Number decides the cluster's networks and its pool of load balancer addresses. It is never given to another cluster.
	Number int `json:"number"`
	// Version is the Kubernetes version, such as "v1.36.3".
	Version string `json:"version"`
	// Machines are the cluster's nodes. The first one holds the control plane.
	Machines []Machine `json:"machines"`
	// Seed makes a further cluster a seed of the garden. The runtime cluster is one anyway.
	Seed bool `json:"seed,omitempty"`
	// DualStack says that pods also have IPv6 addresses. It never changes, as nodes keep their ranges.
	DualStack bool `json:"dualStack,omitempty"`
}

// Machine is one machine of a cluster.
type Machine struct {
	// Name is the host name and the name of the node.
	Name string `json:"name"`
	// Number decides the machine's address.
	Number int `json:"number"`
	// Zone is the number of its zone, and never changes.
	Zone int `json:"zone,omitempty"`
}

// owner is written below runRoot, so that two directories cannot run landscapes of one name, or one index.
type owner struct {
	Dir   string `json:"dir"`
	Index int    `json:"index"`
}

// Open finds the landscape with the given name, whose directory is root/name. It creates nothing. A landscape that never
// came up has no clusters.
func Open(root, name string) (*Landscape, error) {
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("invalid landscape name %q: at most 20 lower case letters, digits and dashes, starting with a letter", name)
	}
	root, err := realPath(root)
	if err != nil {
		return nil, err
	}
	l := &Landscape{Name: name, Dir: filepath.Join(root, name)}
	return l, l.load()
}

// realPath is an absolute path without symbolic links, as the kernel lists mounts. Not all of it has to exist.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		parent, err := realPath(filepath.Dir(path))
		return filepath.Join(parent, filepath.Base(path)), err
	}
	return resolved, err
}

// load reads the landscape's state. A state that cannot be decoded is kept as damage, so that the landscape can still be taken down.
func (l *Landscape) load() error {
	l.state, l.damage = state{Index: -1}, nil
	data, err := os.ReadFile(l.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &l.state); err != nil {
		l.state = state{Index: -1}
		l.damage = &DamagedError{File: l.stateFile(), Landscape: l.Name, Err: err}
	}
	return nil
}

// DamagedError is a landscape whose state cannot be read. It can only be taken down.
type DamagedError struct {
	File, Landscape string
	Err             error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("read %s: %v; remove the landscape with: %s", e.File, e.Err, makeCommand("down", e.Landscape))
}

func (e *DamagedError) Unwrap() error { return e.Err }

// makeCommand is the command for a target of the Makefile, as users run it in the checkout.
func makeCommand(target, landscape string) string {
	if landscape == DefaultName {
		return "make " + target
	}
	return "make " + target + " NAME=" + landscape
}

// HasGarden reports whether the landscape has a garden, or will have one when "up" has finished.
func (l *Landscape) HasGarden() bool { return l.state.VirtualGarden }

// Exists reports whether the landscape has files or networks on this host.
func (l *Landscape) Exists() bool {
	for _, path := range []string{l.Dir, l.runDir(), l.network().NamespacePath()} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// Cluster returns the cluster with the given name.
func (l *Landscape) Cluster(name string) (Cluster, error) {
	if l.damage != nil {
		return Cluster{}, l.damage
	}
	for _, cluster := range l.state.Clusters {
		if cluster.Name == name {
			return cluster, nil
		}
	}
	if len(l.state.Clusters) == 0 {
		return Cluster{}, fmt.Errorf("landscape %q does not exist yet; bring it up with: %s", l.Name, makeCommand("up", l.Name))
	}
	return Cluster{}, fmt.Errorf("landscape %q has no cluster %q, but: %s", l.Name, name, strings.Join(clusterNames(l.state.Clusters), ", "))
}

// CheckKubeconfig returns nil if there is an administrator's kubeconfig of a cluster, and else what to do about it.
func (l *Landscape) CheckKubeconfig(cluster string) error {
	if _, err := l.Cluster(cluster); err != nil && !(l.HasGarden() && cluster == VirtualGarden) {
		return err
	}
	if _, err := os.Stat(l.KubeconfigFile(cluster)); err != nil {
		command := makeCommand("up", l.Name)
		if cluster != RuntimeCluster && cluster != VirtualGarden {
			command += fmt.Sprintf(" UPFLAGS=%q", "--cluster "+cluster)
		}
		return fmt.Errorf("cluster %q has no kubeconfig yet (%w); finish it with: %s", cluster, err, command)
	}
	if cluster != VirtualGarden {
		return nil // kubeadm's are valid for a year
	}
	data, err := os.ReadFile(l.KubeconfigFile(cluster))
	if err != nil {
		return err
	}
	if err := valid(data, time.Now()); err != nil {
		return fmt.Errorf("kubeconfig of cluster %q: %w; renew it with: %s", cluster, err, makeCommand("up", l.Name))
	}
	return nil
}

// valid returns an error if the client certificate of a kubeconfig has expired.
func valid(kubeconfig []byte, now time.Time) error {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	certificates, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		return fmt.Errorf("read the client certificate: %w", err)
	}
	if end := certificates[0].NotAfter; !now.Before(end) {
		return fmt.Errorf("its client certificate has expired at %s", end.Format(time.RFC3339))
	}
	return nil
}

func clusterNames(clusters []Cluster) []string {
	names := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		names = append(names, cluster.Name)
	}
	return names
}

func machineNames(machines []Machine) []string {
	names := make([]string, 0, len(machines))
	for _, machine := range machines {
		names = append(names, machine.Name)
	}
	return names
}

// machine returns the machine with the given name. The error says which there are.
func (l *Landscape) machine(name string) (Machine, error) {
	var all []Machine
	for _, cluster := range l.state.Clusters {
		all = append(all, cluster.Machines...)
	}
	all = append(all, l.state.hosts()...)
	if index := slices.IndexFunc(all, func(m Machine) bool { return m.Name == name }); index >= 0 {
		return all[index], nil
	}
	if len(all) == 0 {
		return Machine{}, fmt.Errorf("landscape %q has no machines yet; bring it up with: %s", l.Name, makeCommand("up", l.Name))
	}
	return Machine{}, fmt.Errorf("landscape %q has no machine %q, but: %s", l.Name, name, strings.Join(machineNames(all), ", "))
}

// Lock makes sure that only one command changes the landscape. It is released when the process ends, however it ends.
func (l *Landscape) Lock() error {
	if err := os.MkdirAll(l.runDir(), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(l.runDir(), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		pid, _ := os.ReadFile(file.Name())
		file.Close()
		return fmt.Errorf("another command (process %s) is changing landscape %q: wait for it to end", strings.TrimSpace(string(pid)), l.Name)
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return err
	}
	l.lock = file // Kept open: the lock lives as long as the descriptor.
	return nil
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// claim makes this directory the owner of the landscape's name and assigns an index, unless it has one that is still free.
// The host-wide lock is held meanwhile, so two landscapes cannot get the same index.
func (l *Landscape) claim() error {
	unlock, err := lockHost()
	if err != nil {
		return err
	}
	defer unlock()
	owners, err := readOwners()
	if err != nil {
		return err
	}
	if l.state.Index, err = l.chooseIndex(owners); err != nil {
		return err
	}
	if mine, running := owners[l.Name]; running && mine.Index == l.state.Index {
		return nil
	}
	if err := l.save(); err != nil {
		return err
	}
	data, err := json.Marshal(owner{Dir: l.Dir, Index: l.state.Index})
	if err != nil {
		return err
	}
	return host.WriteFile(filepath.Join(l.runDir(), "owner.json"), data, 0o644)
}

// chooseIndex returns the index that the landscape has, or could get on a host where owners run. It fails if the landscape cannot run there.
func (l *Landscape) chooseIndex(owners map[string]owner) (int, error) {
	if mine, running := owners[l.Name]; running && mine.Dir != l.Dir {
		return 0, fmt.Errorf("a landscape named %q already runs from %s: choose another name with --name, or take that one down with: %s",
			l.Name, mine.Dir, downCommand(l.Name, mine))
	}
	taken := map[int]bool{}
	for name, other := range owners {
		if name != l.Name {
			taken[other.Index] = true
		}
	}
	if l.state.Index < 0 {
		return host.FreeIndex(taken)
	}
	// The index decides addresses that are in certificates, so a landscape that has one must get it again.
	if taken[l.state.Index] {
		return 0, fmt.Errorf("landscape %q was made with subnet %s, which another landscape uses now: take that one down, or take this one down and up again",
			l.Name, l.network().Subnet())
	}
	return l.state.Index, nil
}

// downCommand is the command that takes a landscape down, also if the checkout that it was created in is gone.
func downCommand(name string, o owner) string {
	return fmt.Sprintf("bin/landscape down --name %s --dir %s", name, filepath.Dir(o.Dir))
}

// disown releases the name and the index, and restores the host's kernel settings when this was the last landscape.
func (l *Landscape) disown() error {
	unlock, err := lockHost()
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.RemoveAll(l.runDir()); err != nil {
		return err
	}
	owners, err := readOwners()
	if err != nil {
		return err
	}
	if len(owners) > 0 {
		return nil
	}
	return kernelSettings().Restore()
}

// owner returns the directory that a running landscape of this name lives in, and whether there is one.
func (l *Landscape) owner() (owner, bool, error) {
	owners, err := readOwners()
	o, ok := owners[l.Name]
	return o, ok, err
}

func lockHost() (unlock func(), err error) {
	if err := os.MkdirAll(runRoot, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(runRoot, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return func() { file.Close() }, nil
}

func readOwners() (map[string]owner, error) {
	files, err := filepath.Glob(filepath.Join(runRoot, "*", "owner.json"))
	if err != nil {
		return nil, err
	}
	owners := map[string]owner{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var o owner
		if err := json.Unmarshal(data, &o); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if o.Dir, err = realPath(o.Dir); err != nil { // it may contain a symbolic link by now
			return nil, err
		}
		owners[filepath.Base(filepath.Dir(file))] = o
	}
	return owners, nil
}

func (l *Landscape) save() error {
	data, err := json.MarshalIndent(l.state, "", "  ")
	if err != nil {
		return err
	}
	return host.WriteFile(l.stateFile(), append(data, '\n'), 0o644)
}

func (l *Landscape) network() host.Network {
	// Clusters that have IPv6 need it: without addresses, flannel would not start, and not say why.
	ipv6 := host.HasIPv6() || slices.ContainsFunc(l.state.Clusters, func(c Cluster) bool { return c.DualStack })
	return host.Network{Landscape: l.Name, Index: max(l.state.Index, 0), Resolvers: hostResolvers(os.ReadFile), IPv6: ipv6}
}

func (l *Landscape) stateFile() string { return filepath.Join(l.Dir, "landscape.json") }
func (l *Landscape) runDir() string    { return filepath.Join(runRoot, l.Name) }
func (l *Landscape) logDir() string    { return filepath.Join(l.Dir, "logs") }

// KubeconfigFile is the file of the administrator's kubeconfig of a cluster.
func (l *Landscape) KubeconfigFile(cluster string) string {
	return filepath.Join(l.Dir, "kubeconfigs", cluster+".yaml")
}

// cgroup is the control group that all containers of the landscape run below.
func (l *Landscape) cgroup() string { return "/gardener-" + l.Name }

// machineCgroup is the control group of a machine, and of all that runs in it.
func (l *Landscape) machineCgroup(machine string) string { return l.cgroup() + "/" + machine }

func kernelSettings() host.Settings {
	return host.Settings{File: filepath.Join(runRoot, "kernel-settings.json"), Root: "/proc/sys"}
}
