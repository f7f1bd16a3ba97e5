package landscape

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/distribution"
	"gardener.cloud/gardener/landscape/addon"
	"gardener.cloud/gardener/landscape/containers"
	"gardener.cloud/gardener/landscape/host"
	"gardener.cloud/gardener/landscape/progress"
)

const (
	// How long each part may take on a busy machine of two cores; usually they take a tenth of it.
	bootTimeout    = 3 * time.Minute
	kubeadmTimeout = 8 * time.Minute
	// kubeadmWait is how long kubeadm waits for the kubelet and the control plane, for which images are pulled. It has a time limit of its own, as
	// it says what is missing.
	kubeadmWait  = 4 * time.Minute
	readyTimeout = 8 * time.Minute

	// clusterMemory is what a runtime cluster of one machine uses, with room for the kernel's caches.
	clusterMemory = 2 << 30
	// shootMemory is what the garden, a seed and a shoot with a node use together with it.
	shootMemory = 5 << 30
	// seedMemory is what a further seed uses without shoots, with room for the kernel's caches.
	seedMemory = 2 << 30
	// newDisk is the disk space of a landscape's images and data, and sameDisk what another gardener image and the logs add to one that runs.
	newDisk  = 5 << 30
	sameDisk = 1 << 30
)

// UpOptions are the desired state of a landscape.
type UpOptions struct {
	// Cluster is the cluster to bring up or change, RuntimeCluster if empty. Other clusters do not change.
	Cluster string
	// Machines is the number of the cluster's machines; 0 keeps the current number, and is 1 for a new cluster.
	Machines int
	// Zones is the number of zones that the machines are spread over; 0 keeps the current number, and is 1 for a new cluster. The number cannot shrink.
	Zones int
	// Seeds is the number of seeds of the garden, with the runtime cluster; 0 keeps the current number. Each further one is a cluster
	// of its own. The number cannot shrink: seeds may have shoots.
	Seeds int
	// Hosts is the number of servers for provider-hosts, which belong to no cluster; 0 keeps the current number. The number cannot shrink: they may be
	// machines of shoots. They need a garden.
	Hosts int
	// Version is the cluster's Kubernetes version, such as "v1.36.3"; empty for the version it has, or the default of the
	// distribution for a new cluster. The version of a cluster that exists cannot be changed.
	Version string
	// Images has the references of the addons' images: usually the release's image vector with the user's overwrites.
	Images imagevector.Vector
	// Gardener is the path of the binary gardener. Empty for clusters without a garden.
	Gardener string
	// RotateEncryptionKeys rotates the keys that Secrets and resources of the garden are encrypted with in etcd. Old ones of clusters are rotated anyway.
	RotateEncryptionKeys bool
	// KeepGardenlets leaves the gardenlets that there are at their version, as in an upgrade of the garden that comes before theirs.
	KeepGardenlets bool
	// Shoot creates the sample shoot and waits for it. It needs a garden.
	Shoot bool
	// TimeoutFactor is by how much each step may take longer than on a busy computer with two cores; 0 is the same as 1.
	TimeoutFactor int
}

func (o UpOptions) withDefaults() UpOptions {
	o.Cluster = cmp.Or(o.Cluster, RuntimeCluster)
	o.TimeoutFactor = cmp.Or(o.TimeoutFactor, 1)
	return o
}

// Check returns every reason why this computer cannot run the landscape, before anything is built or changed.
func (l *Landscape) Check(options UpOptions) error {
	if l.damage != nil {
		return l.damage
	}
	if !l.state.VirtualGarden && l.state.Image != "" {
		return formerError(l.Name)
	}
	next, _, err := l.plan(options.withDefaults(), "")
	if err != nil {
		return err
	}
	owners, err := readOwners()
	if err != nil {
		return err
	}
	_, indexErr := l.chooseIndex(owners)
	runs := func(machine string) bool { return len(host.CgroupProcesses(l.machineCgroup(machine))) > 0 }
	_, err = os.Stat(l.shootKubeconfigFile(Access{Shoot: SampleShoot})) // It is written once the shoot is healthy.
	memory, disk := needs(next, runs, options.Shoot, err == nil)
	return errors.Join(indexErr, host.Preflight(l.Dir, memory, disk))
}

// needs are the bytes of memory and of disk that Up needs in addition to what runs already.
func needs(clusters []Cluster, runs func(machine string) bool, wantShoot, hasShoot bool) (memory, disk int64) {
	stopped := func(cluster Cluster) bool {
		return slices.ContainsFunc(cluster.Machines, func(machine Machine) bool { return !runs(machine.Name) })
	}
	var other bool // a cluster that is no further seed has to be started
	for _, cluster := range clusters {
		switch {
		case !stopped(cluster):
		case cluster.Seed:
			memory += seedMemory
		default:
			other = true
		}
	}
	switch {
	case !runs(clusters[0].Machines[0].Name) && wantShoot:
		memory += shootMemory
	case other, wantShoot && !hasShoot:
		memory += clusterMemory
	}
	if memory == 0 {
		return 0, sameDisk
	}
	return memory, newDisk
}

// Up brings the landscape up, or goes on where an earlier run ended, and returns when all nodes and system pods of the
// cluster are ready, and the sample shoot is healthy.
func (l *Landscape) Up(ctx context.Context, builds *distribution.Distribution, printer *progress.Printer, options UpOptions) error {
	if err := l.Check(options); err != nil {
		return err
	}
	options = options.withDefaults()
	version, err := defaultVersion(builds)
	if err != nil {
		return err
	}
	// Invalid options are refused before anything is changed.
	next, _, err := l.plan(options, version)
	if err != nil {
		return err
	}
	artifacts, err := l.artifacts(builds, next)
	if err != nil {
		return err
	}
	if err := l.Lock(); err != nil {
		return err
	}
	// Another command may have changed the landscape before we had the lock.
	if err := l.load(); err != nil {
		return err
	}
	next, removed, err := l.plan(options, version)
	if err != nil {
		return err
	}
	if err := l.claim(); err != nil {
		return err
	}

	u := &upRun{
		Landscape: l, Printer: printer, builds: builds, artifacts: artifacts, images: options.Images, gardener: options.Gardener,
		rotateKeys: options.RotateEncryptionKeys, keepGardenlets: options.KeepGardenlets, timeoutFactor: options.TimeoutFactor,
	}
	if err := u.step(ctx, "Preparing the host's network", "", u.prepareHost); err != nil {
		return err
	}
	if err := u.step(ctx, "Starting containerd", "containerd", u.startContainerd); err != nil {
		return err
	}
	defer u.client.Close() //nolint:errcheck // nothing is lost
	if len(removed) > 0 {
		cluster, err := l.Cluster(options.Cluster)
		if err != nil {
			return err
		}
		for _, machine := range removed {
			if err := u.step(ctx, "Removing machine "+machine.Name, machine.Name, func(ctx context.Context, _ func(string)) error {
				if err := l.removeNode(ctx, u.client, cluster, machine.Name); err != nil {
					return err
				}
				return l.removeMachine(ctx, u.client, machine.Name)
			}); err != nil {
				return err
			}
		}
	}
	// All or none: the seeds of a landscape have the same configuration of provider-local.
	dualStack := host.HasIPv6() && !slices.ContainsFunc(l.state.Clusters, func(c Cluster) bool { return !c.DualStack })
	for i := range next {
		if !l.has(next[i].Name) {
			next[i].DualStack = dualStack
		}
	}
	l.state.Clusters = next
	if l.state.Hosts, err = planHosts(l.state.Hosts, options.Hosts); err != nil {
		return err
	}
	l.state.VirtualGarden = l.state.VirtualGarden || options.Gardener != ""
	if err := l.save(); err != nil {
		return err
	}
	if err := u.step(ctx, "Importing images", "containerd", u.importImages); err != nil {
		return err
	}
	if err := u.step(ctx, "Starting resolver and registry", registryContainer, u.startServices); err != nil {
		return err
	}
	if err := u.step(ctx, "Pushing images to the registry", registryContainer, u.pushImages); err != nil {
		return err
	}
	for _, cluster := range l.state.Clusters {
		if err := u.bringUpCluster(ctx, cluster); err != nil {
			return err
		}
	}
	if options.Gardener == "" {
		return nil
	}
	if l.state.Hosts > 0 {
		if err := u.bringUpHosts(ctx); err != nil {
			return err
		}
	}
	if !options.KeepGardenlets {
		// Only now, when the gardenlets of all seeds have the new image.
		if err := u.rollShoots(ctx); err != nil {
			return err
		}
	}
	if !options.Shoot {
		return nil
	}
	return u.bringUpSample(ctx)
}

// plan returns the desired clusters, and the machines to remove. It changes nothing.
func (l *Landscape) plan(options UpOptions, defaultVersion string) (next []Cluster, removed []Machine, err error) {
	if options.Cluster == hostPrefix {
		return nil, nil, fmt.Errorf("a cluster cannot be named %q: its machines would have the names of hosts", hostPrefix)
	}
	if _, err := planHosts(l.state.Hosts, options.Hosts); err != nil {
		return nil, nil, err
	}
	if options.Cluster == VirtualGarden {
		return nil, nil, fmt.Errorf("cluster %q is the garden itself, which runs in cluster %q: choose another name", VirtualGarden, RuntimeCluster)
	}
	next = slices.Clone(l.state.Clusters)
	if len(next) == 0 {
		next = append(next, Cluster{Name: RuntimeCluster, Version: defaultVersion})
	}
	index := slices.IndexFunc(next, func(c Cluster) bool { return c.Name == options.Cluster })
	if index < 0 {
		if !namePattern.MatchString(options.Cluster) {
			return nil, nil, fmt.Errorf("invalid cluster name %q: at most 20 lower case letters, digits and dashes, starting with a letter", options.Cluster)
		}
		if next, err = addCluster(next, Cluster{Name: options.Cluster, Version: defaultVersion}); err != nil {
			return nil, nil, err
		}
		index = len(next) - 1
	}
	cluster := &next[index]
	if options.Version != "" {
		if l.has(cluster.Name) && cluster.Version != options.Version {
			return nil, nil, fmt.Errorf("cluster %q runs Kubernetes %s, which cannot be changed to %s: take the landscape down first, or use another cluster",
				cluster.Name, cluster.Version, options.Version)
		}
		cluster.Version = options.Version
	}
	if len(next[0].Machines) == 0 && index > 0 {
		next[0].Machines = []Machine{{Name: RuntimeCluster + "-0", Number: 0}}
	}
	want := options.Machines
	if want == 0 {
		want = max(1, len(cluster.Machines))
	}
	if want < 0 || want > host.MaxMachines {
		return nil, nil, fmt.Errorf("the number of machines must be between 1 and %d, not %d", host.MaxMachines, options.Machines)
	}
	zones, err := planZones(*cluster, options.Zones, want)
	if err != nil {
		return nil, nil, err
	}
	if want < len(cluster.Machines) {
		removed = slices.Clone(cluster.Machines[want:])
		cluster.Machines = slices.Clone(cluster.Machines[:want])
	} else if err := addMachines(next, index, want, zones); err != nil {
		return nil, nil, err
	}
	next, err = planSeeds(next, options.Seeds, defaultVersion)
	return next, removed, err
}

// planSeeds returns the clusters with as many seeds as desired, 0 for those that there are.
func planSeeds(clusters []Cluster, want int, defaultVersion string) (next []Cluster, err error) {
	next = slices.Clone(clusters)
	if have := len(seedClusters(next)); want < 0 || want > 0 && want < have {
		return nil, fmt.Errorf("the landscape has %d seeds, which may have shoots, and cannot have %d: take it down first", have, want)
	}
	for number := 2; number <= want; number++ {
		name := seedName + "-" + strconv.Itoa(number)
		index := slices.IndexFunc(next, func(c Cluster) bool { return c.Name == name })
		if index < 0 {
			index = len(next)
			if next, err = addCluster(next, Cluster{Name: name, Version: defaultVersion}); err != nil {
				return nil, err
			}
			if err := addMachines(next, index, 1, 1); err != nil {
				return nil, err
			}
		}
		next[index].Seed = true
	}
	return next, nil
}

// addCluster gives a cluster the first free number, and returns the clusters with it.
func addCluster(clusters []Cluster, cluster Cluster) ([]Cluster, error) {
	for slices.ContainsFunc(clusters, func(c Cluster) bool { return c.Number == cluster.Number }) {
		cluster.Number++
	}
	if cluster.Number >= host.MaxClusters {
		return nil, fmt.Errorf("a landscape has room for %d clusters", host.MaxClusters)
	}
	return append(clusters, cluster), nil
}

// addMachines adds machines to a cluster until it has as many as desired, spread over a number of zones.
func addMachines(clusters []Cluster, index, want, zones int) error {
	cluster := &clusters[index]
	cluster.Machines = slices.Clone(cluster.Machines)
	for i := len(cluster.Machines); i < want; i++ {
		number, err := freeMachineNumber(clusters)
		if err != nil {
			return err
		}
		cluster.Machines = append(cluster.Machines, Machine{
			Name: cluster.Name + "-" + strconv.Itoa(i), Number: number, Zone: emptiestZone(cluster.Machines, zones),
		})
	}
	return nil
}

// has reports whether the landscape has a cluster of this name.
func (l *Landscape) has(cluster string) bool {
	return slices.ContainsFunc(l.state.Clusters, func(c Cluster) bool { return c.Name == cluster })
}

func freeMachineNumber(clusters []Cluster) (int, error) {
	for number := range host.MaxMachines - maxHosts {
		if !slices.ContainsFunc(clusters, func(c Cluster) bool {
			return slices.ContainsFunc(c.Machines, func(m Machine) bool { return m.Number == number })
		}) {
			return number, nil
		}
	}
	return 0, fmt.Errorf("a landscape has room for %d machines", host.MaxMachines-maxHosts)
}

// artifacts are the artifacts of the distribution by product, and those of Kubernetes by version, with all versions that were built:
// clusters of the landscape use one each, and shoots may have any.
type artifacts struct {
	products   map[string]*distribution.Artifact
	kubernetes map[string]*distribution.Artifact
}

// products are the products of the distribution that every landscape needs, but for Kubernetes, of which each cluster has
// a version of its own.
func products() []string {
	return append(addon.Products(), "base", autoscalerProduct, "containerd", "crun", "haproxy", "runc", "etcd", "pause", "registry", "machine")
}

func defaultVersion(builds *distribution.Distribution) (string, error) {
	artifact, err := builds.Artifact("kubernetes")
	if err != nil {
		return "", err
	}
	return artifact.Version, nil
}

func (l *Landscape) artifacts(builds *distribution.Distribution, clusters []Cluster) (*artifacts, error) {
	a := &artifacts{products: map[string]*distribution.Artifact{}, kubernetes: map[string]*distribution.Artifact{}}
	for _, product := range products() {
		artifact, err := builds.Artifact(product)
		if err != nil {
			return nil, err
		}
		a.products[product] = artifact
	}
	built, err := builds.Built("kubernetes")
	if err != nil {
		return nil, err
	}
	for _, artifact := range built {
		a.kubernetes[artifact.Version] = artifact
	}
	for _, cluster := range clusters {
		artifact, err := l.kubernetes(builds.Artifact, cluster)
		if err != nil {
			return nil, err
		}
		a.kubernetes[cluster.Version] = artifact
	}
	return a, nil
}

// kubernetes returns the artifact of the cluster's version. A cluster keeps the version it was created with, which the checkout may not
// have any more.
func (l *Landscape) kubernetes(find func(ref string) (*distribution.Artifact, error), cluster Cluster) (*distribution.Artifact, error) {
	artifact, err := find("kubernetes@" + cluster.Version)
	if err != nil && l.has(cluster.Name) {
		return nil, fmt.Errorf("cluster %q runs Kubernetes %s, which is not in the cache: %w; or recreate the landscape with: %s",
			cluster.Name, cluster.Version, err, makeCommand("down up", l.Name))
	}
	return artifact, err
}

// image returns the image of a product that has one.
func (a *artifacts) image(product string) (distribution.Image, error) {
	images, err := a.products[product].Images()
	if err != nil {
		return distribution.Image{}, err
	}
	if len(images) != 1 {
		return distribution.Image{}, fmt.Errorf("product %q has %d images instead of one", product, len(images))
	}
	return images[0], nil
}

// upRun is one run of Up.
type upRun struct {
	*Landscape
	*progress.Printer

	builds    *distribution.Distribution
	artifacts *artifacts
	images    imagevector.Vector
	gardener  string
	// image is the gardener image, and overwrite the image vector overwrite of gardener-operator and gardenlets, once they are pushed.
	image, overwrite string
	// rotateKeys rotates the keys that data in etcd is encrypted with.
	rotateKeys bool
	// keepGardenlets leaves existing gardenlets at their version.
	keepGardenlets bool
	// timeoutFactor multiplies how long each step may take.
	timeoutFactor int
	client        *containers.Client
}

// timeout is how long a step may take that usually ends within d.
func (u *upRun) timeout(d time.Duration) time.Duration { return d * time.Duration(u.timeoutFactor) }

// limit ends a step that takes longer than it may.
func (u *upRun) limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	d = u.timeout(d)
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("not done after %s; on a slow computer, use --timeout-factor", d))
}

// step runs one step; log is the container whose log explains a failure, empty if none does.
func (u *upRun) step(ctx context.Context, title, log string, do func(context.Context, func(string)) error) error {
	if log != "" {
		log = u.logFile(log)
	}
	return u.Step(ctx, title, log, do)
}

func (u *upRun) prepareHost(ctx context.Context, _ func(string)) error {
	if err := kernelSettings().Apply(); err != nil {
		return err
	}
	return u.network().Ensure(ctx)
}

func (u *upRun) startContainerd(ctx context.Context, _ func(string)) (err error) {
	u.client, err = u.daemon(u.artifacts).Start(ctx)
	return err
}

func (u *upRun) importImages(ctx context.Context, detail func(string)) error {
	for _, product := range []string{"registry", "coredns", "machine"} {
		detail(product)
		image, err := u.artifacts.image(product)
		if err != nil {
			return err
		}
		if err := u.client.Import(ctx, u.artifacts.products[product].ImagesDir(), map[string]string{image.Reference: image.Digest}); err != nil {
			return err
		}
	}
	return nil
}

func (u *upRun) startServices(ctx context.Context, _ func(string)) error {
	registry, err := u.artifacts.image("registry")
	if err != nil {
		return err
	}
	resolver, err := u.artifacts.image("coredns")
	if err != nil {
		return err
	}
	return errors.Join(u.ensureRegistry(ctx, u.client, registry.Reference), u.ensureResolver(ctx, u.client, resolver.Reference))
}

func (u *upRun) pushImages(ctx context.Context, detail func(string)) error {
	var images []distribution.Image
	for _, artifact := range u.artifacts.all() {
		more, err := artifact.Images()
		if err != nil {
			return err
		}
		images = append(images, more...)
	}
	for _, image := range images {
		detail(image.Reference)
		loaded, err := image.Load()
		if err != nil {
			return err
		}
		if err := u.push(ctx, image.Reference, loaded); err != nil {
			return err
		}
	}
	return nil
}

// all returns the artifacts whose images machines may pull.
func (a *artifacts) all() []*distribution.Artifact {
	all := slices.AppendSeq(slices.Collect(maps.Values(a.products)), maps.Values(a.kubernetes))
	slices.SortFunc(all, func(x, y *distribution.Artifact) int {
		return strings.Compare(x.Product+x.Version, y.Product+y.Version)
	})
	return all
}

func (u *upRun) bringUpCluster(ctx context.Context, cluster Cluster) error {
	image, err := u.artifacts.image("machine")
	if err != nil {
		return err
	}
	etcd, err := u.artifacts.image("etcd")
	if err != nil {
		return err
	}
	kubernetes, err := u.artifacts.kubernetes[cluster.Version].Binary("kubeadm")
	if err != nil {
		return err
	}
	images, err := u.artifacts.deployedImages(u.images, addon.Products()...)
	if err != nil {
		return err
	}
	for _, machine := range cluster.Machines {
		if err := u.step(ctx, "Booting machine "+machine.Name, machine.Name, func(ctx context.Context, _ func(string)) error {
			ctx, cancel := u.limit(ctx, bootTimeout)
			defer cancel()
			return u.ensureMachine(ctx, u.client, cluster, machine, image.Reference, filepath.Dir(kubernetes))
		}); err != nil {
			return err
		}
		title := "Initializing the control plane of cluster " + cluster.Name
		if verb(cluster, machine) == "join" {
			title = "Joining machine " + machine.Name + " to cluster " + cluster.Name
		}
		if err := u.step(ctx, title, "", func(ctx context.Context, detail func(string)) error {
			ctx, cancel := u.limit(ctx, kubeadmTimeout)
			defer cancel()
			if err := u.ensureNode(ctx, u.client, cluster, machine, tagOf(etcd.Reference), u.timeout(kubeadmWait), detail); err != nil {
				return err
			}
			if verb(cluster, machine) == "join" {
				return nil
			}
			return errors.Join(u.writeKubeconfig(ctx, u.client, cluster), u.network().RoutePool(ctx, cluster.Number, machine.Number))
		}); err != nil {
			return err
		}
		if verb(cluster, machine) == "init" {
			if err := u.step(ctx, "Deploying network, DNS, storage, load balancer and metrics", "", func(ctx context.Context, _ func(string)) error {
				ctx, cancel := u.limit(ctx, readyTimeout)
				defer cancel()
				if err := u.awaitAPIServer(ctx, cluster); err != nil {
					return err
				}
				return u.installAddons(ctx, cluster, images)
			}); err != nil {
				return err
			}
			if err := u.step(ctx, "Encrypting Secrets of cluster "+cluster.Name+" in etcd", "", func(ctx context.Context, detail func(string)) error {
				ctx, cancel := u.limit(ctx, encryptionTimeout)
				defer cancel()
				return u.encryptSecrets(ctx, cluster, tagOf(etcd.Reference), detail)
			}); err != nil {
				return err
			}
		}
	}
	// The nodes and pods of the cluster become ready meanwhile.
	if cluster.Name == RuntimeCluster && u.gardener != "" {
		if err := u.bringUpGarden(ctx, cluster); err != nil {
			return err
		}
	}
	if cluster.seed() != "" && u.gardener != "" {
		if err := u.bringUpSeed(ctx, cluster); err != nil {
			return err
		}
	}
	return u.step(ctx, "Waiting until cluster "+cluster.Name+" is ready", "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := u.limit(ctx, readyTimeout)
		defer cancel()
		return u.awaitCluster(ctx, cluster, detail)
	})
}

// deployedImages are the images of products that are deployed: the image vector names them, and those of the distribution are pinned to their
// digest, so that pods are rolled when they are rebuilt.
func (a *artifacts) deployedImages(vector imagevector.Vector, products ...string) (map[string]string, error) {
	images := map[string]string{}
	for _, product := range products {
		image, err := vector.Find(product, imagevector.Query{})
		if err != nil {
			return nil, err
		}
		images[product] = image.WithDefaultTag(a.products[product].Version).String()
		built, err := a.image(product)
		if err != nil {
			return nil, err
		}
		if built.Reference == images[product] {
			images[product] += "@" + built.Digest
		}
	}
	return images, nil
}
