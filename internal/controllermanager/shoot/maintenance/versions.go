package maintenance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/cloudprofile"
	"gardener.cloud/gardener/internal/validation/core"
	"gardener.cloud/gardener/internal/validation/ordered"
)

// plan is the decision about versions.
type plan struct {
	changes  []change
	failures []string
}

// change is a version that maintenance changes.
type change struct {
	// reason is that of the event.
	reason string
	// text describes the change for messages.
	text string
}

// updater changes the versions in a spec to the desired ones.
type updater struct {
	plan
	spec    *corev1beta1.ShootSpec
	profile *corev1beta1.CloudProfileSpec
	now     time.Time
}

func (u *updater) run() {
	auto := corev1beta1.MaintenanceAutoUpdate{}
	if m := u.spec.Maintenance; m != nil && m.AutoUpdate != nil {
		auto = *m.AutoUpdate
	}
	from := u.spec.Kubernetes.Version
	u.controlPlane(auto.KubernetesVersion)
	u.settings(from)
	for i := range u.spec.Provider.Workers {
		worker := &u.spec.Provider.Workers[i]
		u.kubelet(worker, auto.KubernetesVersion)
		u.image(worker, ptr.Deref(auto.MachineImageVersion, true)) // the image has to support the new kubelet
	}
	u.featureGates()
}

func (u *updater) controlPlane(auto bool) {
	const what = "Kubernetes of the control plane"
	from := u.spec.Kubernetes.Version
	current, err := semver.NewVersion(from)
	if err != nil {
		u.fail("spec.kubernetes.version %q is no version like 1.36.1", from)
		return
	}
	offer := offer{u.profile.Kubernetes.Versions, u.now}
	forced := offer.mustLeave(from)
	if !auto && forced == "" {
		return
	}
	to := offer.newest(from, forced, patchOf(current))
	if to == "" && forced != "" {
		next := func(_ int, v *semver.Version) bool {
			return v.Major() == current.Major() && v.Minor() == current.Minor()+1
		}
		// Minor versions cannot be skipped: one that has expired, too, is a step on the way to one that has not.
		to = cmp.Or(offer.newest(from, forced, next), offer.newestExpired(next))
	}
	if u.decided(constants.EventShootKubernetesVersionMaintenance, what, from, to, forced) {
		u.spec.Kubernetes.Version = to
	}
}

// kubelet updates the Kubernetes version of a pool that has its own. Others follow the control plane. The version of a pool is never newer
// than that of the control plane, nor older than the supported version skew.
func (u *updater) kubelet(worker *corev1beta1.Worker, auto bool) {
	if worker.Kubernetes == nil || worker.Kubernetes.Version == nil {
		return
	}
	from := *worker.Kubernetes.Version
	current, err := semver.NewVersion(from)
	controlPlane, controlPlaneErr := semver.NewVersion(u.spec.Kubernetes.Version)
	if err != nil || controlPlaneErr != nil || !current.LessThan(controlPlane) {
		return // as high as possible; admission rejects invalid versions
	}
	offer := offer{u.profile.Kubernetes.Versions, u.now}
	possible := func(v *semver.Version) bool {
		return !v.GreaterThan(controlPlane) && v.Minor()+core.MaxKubeletSkew >= controlPlane.Minor()
	}
	forced := offer.mustLeave(from)
	if !possible(current) {
		forced = "the control plane would be too far ahead"
	}
	if !auto && forced == "" {
		return
	}
	patch := patchOf(current)
	to := offer.newest(from, forced, func(i int, v *semver.Version) bool { return patch(i, v) && possible(v) })
	if forced != "" {
		for minor := current.Minor() + 1; to == "" && minor <= controlPlane.Minor(); minor++ {
			to = offer.newest(from, forced, func(_ int, v *semver.Version) bool { return v.Minor() == minor && possible(v) })
		}
		to = cmp.Or(to, u.spec.Kubernetes.Version) // which may have expired, too, but is in use
	}
	if u.decided(constants.EventShootKubernetesVersionMaintenance, fmt.Sprintf("Kubernetes of pool %q", worker.Name), from, to, forced) {
		worker.Kubernetes.Version = &to
	}
}

// settings removes those that the API server does not accept for the new version of the control plane, so that a forced update does not fail because of
// them, as in the original.
//
//nolint:staticcheck // the fields are in use up to Kubernetes 1.34
func (u *updater) settings(from string) {
	before, err := semver.NewVersion(from)
	after, errAfter := semver.NewVersion(u.spec.Kubernetes.Version)
	since := semver.New(1, 35, 0, "", "")
	if err != nil || errAfter != nil || !before.LessThan(since) || after.LessThan(since) {
		return
	}
	remove := func(path string, has bool, unset func()) {
		if !has {
			return
		}
		unset()
		u.changes = append(u.changes, change{
			constants.EventShootKubernetesVersionMaintenance,
			fmt.Sprintf("%s: it is removed, as it is not possible with Kubernetes %s", path, u.spec.Kubernetes.Version),
		})
	}
	s := u.spec
	remove("spec.addons", s.Addons != nil, func() { s.Addons = nil })
	if server := s.Kubernetes.KubeAPIServer; server != nil {
		const path = "spec.kubernetes.kubeAPIServer."
		remove(path+"enableAnonymousAuthentication", server.EnableAnonymousAuthentication != nil, func() { server.EnableAnonymousAuthentication = nil })
		sizes := server.WatchCacheSizes
		remove(path+"watchCacheSizes.default", sizes != nil && sizes.Default != nil, func() { sizes.Default = nil })
	}
	if scheduler := s.Kubernetes.KubeScheduler; scheduler != nil {
		remove("spec.kubernetes.kubeScheduler.kubeMaxPDVols", scheduler.KubeMaxPDVols != nil, func() { scheduler.KubeMaxPDVols = nil })
	}
	if s.DNS == nil {
		return
	}
	for i := range s.DNS.Providers {
		provider := &s.DNS.Providers[i]
		// The API server has copied the name to the field that replaces it.
		remove(fmt.Sprintf("spec.dns.providers[%d].secretName", i), provider.SecretName != nil && provider.CredentialsRef != nil, func() { provider.SecretName = nil })
	}
}

// featureGates removes those that the new versions do not support, so that a forced update does not fail because of them.
func (u *updater) featureGates() {
	k := &u.spec.Kubernetes
	if k.KubeAPIServer != nil {
		u.possibleGates("the kube-apiserver", &k.KubeAPIServer.KubernetesConfig, k.Version)
	}
	if k.KubeControllerManager != nil {
		u.possibleGates("the kube-controller-manager", &k.KubeControllerManager.KubernetesConfig, k.Version)
	}
	if k.KubeScheduler != nil {
		u.possibleGates("the kube-scheduler", &k.KubeScheduler.KubernetesConfig, k.Version)
	}
	if k.KubeProxy != nil {
		u.possibleGates("kube-proxy", &k.KubeProxy.KubernetesConfig, k.Version)
	}
	if k.Kubelet != nil {
		u.possibleGates("kubelets", &k.Kubelet.KubernetesConfig, k.Version)
	}
	for i := range u.spec.Provider.Workers {
		worker := &u.spec.Provider.Workers[i]
		if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil {
			u.possibleGates(fmt.Sprintf("kubelets of pool %q", worker.Name), &worker.Kubernetes.Kubelet.KubernetesConfig, u.kubeletVersion(worker))
		}
	}
}

func (u *updater) possibleGates(of string, config *corev1beta1.KubernetesConfig, version string) {
	for name, value := range ordered.Map(config.FeatureGates) {
		if core.FeatureGatePossible(name, value, version) {
			continue
		}
		delete(config.FeatureGates, name)
		u.changes = append(u.changes, change{
			constants.EventShootKubernetesVersionMaintenance,
			fmt.Sprintf("feature gate %s of %s from %t to its default, as Kubernetes %s does not support it", name, of, value, version),
		})
	}
}

// patchOf accepts later patch versions of the same minor version.
func patchOf(current *semver.Version) func(int, *semver.Version) bool {
	return func(_ int, v *semver.Version) bool {
		return v.Major() == current.Major() && v.Minor() == current.Minor() && v.GreaterThan(current)
	}
}

func (u *updater) image(worker *corev1beta1.Worker, auto bool) {
	used := worker.Machine.Image
	if used == nil || used.Version == nil {
		return
	}
	what := fmt.Sprintf("machine image %s of pool %q", used.Name, worker.Name)
	current, err := semver.NewVersion(*used.Version)
	if err != nil {
		u.fail("%s: %q is no version like 1.2.3", what, *used.Version)
		return
	}
	image := cloudprofile.FindImage(u.profile, used.Name)
	if image == nil {
		u.fail("%s is not offered by the cloud profile any more; choose another one", what)
		return
	}
	offer := offer{cloudprofile.ImageVersions(image), u.now}
	forced, unfit := offer.mustLeave(*used.Version), false
	if version := cloudprofile.FindImageVersion(u.profile, used.Name, *used.Version); version != nil && !u.runsKubelet(version, worker) {
		forced, unfit = "it does not support Kubernetes "+u.kubeletVersion(worker), true
	}
	if !auto && forced == "" {
		return
	}
	strategy := ptr.Deref(image.UpdateStrategy, corev1beta1.UpdateStrategyMajor)
	first := func(newest func(accept func(int, *semver.Version) bool) string) string {
		for _, allowed := range lines(offer.versions, strategy, current, forced != "") {
			if to := newest(func(i int, v *semver.Version) bool {
				return v.GreaterThan(current) && lineOf(strategy, v) == allowed && u.fits(&image.Versions[i], current, worker)
			}); to != "" {
				return to
			}
		}
		return ""
	}
	to := first(func(accept func(int, *semver.Version) bool) string {
		return offer.newest(*used.Version, forced, accept)
	})
	if to == "" && unfit {
		to = first(offer.newestExpired) // otherwise, the API server would reject the new version of Kubernetes
	}
	if u.decided(constants.EventShootImageVersionMaintenance, what, *used.Version, to, forced) {
		used.Version = &to
	}
}

// decided records the decision about a version, and returns whether it changes.
func (u *updater) decided(reason, what, from, to, forced string) bool {
	switch {
	case to != "":
		text := fmt.Sprintf("%s from %s to %s, as %s", what, from, to, cmp.Or(forced, "automatic updates are on"))
		u.changes = append(u.changes, change{reason, text})
	case forced != "":
		u.fail("%s cannot be updated from %s, although %s: the cloud profile offers no suitable version", what, from, forced)
	}
	return to != ""
}

func (u *updater) fail(format string, args ...any) {
	u.failures = append(u.failures, fmt.Sprintf(format, args...))
}

// offer is the list of versions in a cloud profile, at a time.
type offer struct {
	versions []corev1beta1.ExpirableVersion
	now      time.Time
}

// classification returns the classification of a version, and whether the version is offered.
func (o offer) classification(version string) (corev1beta1.VersionClassification, bool) {
	i := slices.IndexFunc(o.versions, func(v corev1beta1.ExpirableVersion) bool { return v.Version == version })
	if i < 0 {
		return "", false
	}
	return o.versions[i].ClassificationAt(o.now), true
}

// mustLeave returns why a version cannot be kept; "" if it can.
func (o offer) mustLeave(version string) string {
	switch classification, offered := o.classification(version); {
	case !offered:
		return "the cloud profile does not offer it any more"
	case classification == corev1beta1.ClassificationExpired:
		return "it has expired"
	}
	return ""
}

// newest returns the newest version that is accepted; "" if there is none. A version that can be kept and is not deprecated is not updated
// to a deprecated one.
func (o offer) newest(from, forced string, accept func(int, *semver.Version) bool) string {
	to := cloudprofile.Newest(o.versions, o.now, accept)
	was, _ := o.classification(from)
	if is, _ := o.classification(to); forced == "" && is == corev1beta1.ClassificationDeprecated && was != corev1beta1.ClassificationDeprecated {
		return ""
	}
	return to
}

// newestExpired returns the newest version that has expired and is accepted; "" if there is none.
func (o offer) newestExpired(accept func(int, *semver.Version) bool) string {
	name, newest := "", (*semver.Version)(nil)
	for i, version := range o.versions {
		parsed, err := semver.NewVersion(version.Version)
		if err == nil && version.ClassificationAt(o.now) == corev1beta1.ClassificationExpired && accept(i, parsed) && (newest == nil || parsed.GreaterThan(newest)) {
			name, newest = version.Version, parsed
		}
	}
	return name
}

// line identifies the versions of an image among which its update strategy allows updates.
type line struct{ major, minor uint64 }

func lineOf(strategy corev1beta1.MachineImageUpdateStrategy, v *semver.Version) line {
	switch strategy {
	case corev1beta1.UpdateStrategyPatch:
		return line{v.Major(), v.Minor()}
	case corev1beta1.UpdateStrategyMinor:
		return line{major: v.Major()}
	case corev1beta1.UpdateStrategyMajor:
	}
	return line{}
}

// lines returns the lines to which an image may be updated, in the order of preference: its own line and, if the version cannot be kept, the
// next ones. With the strategy "patch" the major version stays in any case.
func lines(offered []corev1beta1.ExpirableVersion, strategy corev1beta1.MachineImageUpdateStrategy, current *semver.Version, forced bool) []line {
	own := lineOf(strategy, current)
	all := []line{own}
	if !forced {
		return all
	}
	later := func(a, b line) int { return cmp.Or(cmp.Compare(a.major, b.major), cmp.Compare(a.minor, b.minor)) }
	for _, version := range offered {
		v, err := semver.NewVersion(version.Version)
		if err != nil || strategy == corev1beta1.UpdateStrategyPatch && v.Major() != current.Major() {
			continue
		}
		if l := lineOf(strategy, v); later(l, own) > 0 && !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, later)
	return all
}

// fits reports whether a version of an image supports the machines of a pool, its kubelet and its container runtimes, and can be reached
// with the update strategy of the pool.
func (u *updater) fits(version *corev1beta1.MachineImageVersion, current *semver.Version, worker *corev1beta1.Worker) bool {
	architecture := ptr.Deref(worker.Machine.Architecture, constants.ArchitectureAMD64)
	return cloudprofile.RunsOn(u.profile, version, architecture, cloudprofile.FindMachineType(u.profile, worker.Machine.Type)) &&
		u.runsKubelet(version, worker) && runsContainers(version, worker.CRI) && reachable(version, current, worker.UpdateStrategy)
}

func (u *updater) kubeletVersion(worker *corev1beta1.Worker) string {
	if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
		return *worker.Kubernetes.Version
	}
	return u.spec.Kubernetes.Version
}

func (u *updater) runsKubelet(version *corev1beta1.MachineImageVersion, worker *corev1beta1.Worker) bool {
	if version.KubeletVersionConstraint == nil {
		return true
	}
	constraint, err := semver.NewConstraint(*version.KubeletVersionConstraint)
	if err != nil {
		return false
	}
	parsed, err := semver.NewVersion(u.kubeletVersion(worker))
	return err == nil && constraint.Check(parsed)
}

func runsContainers(version *corev1beta1.MachineImageVersion, required *corev1beta1.CRI) bool {
	if required == nil {
		return true
	}
	i := slices.IndexFunc(version.CRI, func(cri corev1beta1.CRI) bool { return cri.Name == required.Name })
	return i >= 0 && !slices.ContainsFunc(required.ContainerRuntimes, func(w corev1beta1.ContainerRuntime) bool {
		return !slices.ContainsFunc(version.CRI[i].ContainerRuntimes, func(r corev1beta1.ContainerRuntime) bool { return r.Type == w.Type })
	})
}

// reachable reports whether nodes can be updated to a version: in-place updates are not supported between all versions.
func reachable(version *corev1beta1.MachineImageVersion, current *semver.Version, strategy *corev1beta1.MachineUpdateStrategy) bool {
	if strategy == nil || *strategy == corev1beta1.AutoRollingUpdate {
		return true
	}
	updates := version.InPlaceUpdates
	if updates == nil || !updates.Supported {
		return false
	}
	if updates.MinVersionForUpdate == nil {
		return true
	}
	lowest, err := semver.NewVersion(*updates.MinVersionForUpdate)
	return err == nil && !current.LessThan(lowest)
}
