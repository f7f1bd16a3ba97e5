package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/apiserverproxy"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubeproxy"
	"gardener.cloud/gardener/internal/component/managedresource"
	"gardener.cloud/gardener/internal/component/metricsserver"
	"gardener.cloud/gardener/internal/component/nodelocaldns"
	"gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/vpnseedserver"
	"gardener.cloud/gardener/internal/component/vpnshoot"
	"gardener.cloud/gardener/internal/gardenlet/managed"
	"gardener.cloud/gardener/internal/gardenlet/shoot/credentials"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

const (
	// networkResource is the ManagedResource with the ways between nodes and control plane, and what may talk to whom.
	networkResource = "shoot-core-network"
	// httpsPort is where the gateway of the seed is reached.
	httpsPort = "443"
)

// nodes are the tasks for machines, and for what runs on all of them. Machines of a new control plane are ordered as soon as it is known
// what will be on them: they wait for the API server longer than it takes to start. One that is there is updated before its nodes are.
func (h *hosted) nodes() []flow.Task {
	agents := task("node-agents", "Telling node agents what to do", h.deployNodeAgents, "operating-system-configs")
	worker := lasting(extensionTimeout, task("worker", "Waiting for the nodes", h.orderWorker, "operating-system-configs", "infrastructure", "kube-apiserver"))
	if h.settled() || replacesAuthorities(h.shoot) {
		// Kubelets must not be newer than the API server, and once they have forgotten an old authority, they refuse one with its certificate.
		agents.After = append(agents.After, "kube-apiserver-ready")
		worker.After = append(worker.After, "kube-apiserver-ready")
	}
	var signs []flow.Task
	if replacesAuthorities(h.shoot) {
		// A new machine asks for its certificates soon, and would keep those that an old controller manager signs. A new one that is ready
		// may still wait until the old one has stopped.
		signs = append(signs, lasting(podsTimeout, task("old-kube-controller-manager-gone", "Waiting until nobody signs with an old authority", func(ctx context.Context) error {
			return h.oldPodsGone(ctx, kubecontrollermanager.Labels())
		}, "kube-controller-manager-ready")))
		worker.After = append(worker.After, "old-kube-controller-manager-gone")
	}
	ends := podsTimeout
	if replacesAuthorities(h.shoot) {
		ends = extensionTimeout // of a node that is lost just then, the machine is replaced first
	}
	return append(signs, []flow.Task{
		task("vpn-seed-server", "Deploying the tunnel server", func(ctx context.Context) error {
			return h.deployTunnelServer(ctx, h.replicas(h.pods()))
		}, "credentials"),
		lasting(extensionTimeout, task("operating-system-configs", "Waiting for what will be on machines", h.orderSystemConfigs, "credentials", "cluster")),
		agents,
		worker,
		task("system-components", "Writing what runs on nodes", h.deploySystemComponents, "infrastructure"),
		task("kube-proxy", "Writing kube-proxies", h.deployKubeProxy, "kube-apiserver-ready"),
		lasting(ends, task("tunnel", "Waiting until the control plane reaches the nodes", func(ctx context.Context) error {
			if h.hibernated() {
				return nil // The nodes go, and with them the tunnel's agent.
			}
			return h.awaitTunnel(ctx)
		}, "system-components", "vpn-seed-server", "worker")),
		lasting(extensionTimeout, task("nodes-updated", "Waiting until node agents have done what they are told", h.awaitNodeAgents, "node-agents", "tunnel")),
		task("stale-node-local-dns", "Removing DNS caches that no node needs", h.dropNodeLocalDNS, "system-components", "worker"),
		task("stale-operating-system-configs", "Forgetting what was on machines that are gone", h.dropStaleSystemConfigs, "worker", "node-agents"),
	}...)
}

// awaitTunnel waits until both ends of the tunnel are as they are wanted now, and work.
func (h *hosted) awaitTunnel(ctx context.Context) error {
	if err := h.deploymentReady(ctx, vpnseedserver.Name); err != nil {
		return err
	}
	return awaitOne(ctx, h.SeedClient, h.namespace, networkResource, &resourcesv1alpha1.ManagedResourceList{}, func(mr *resourcesv1alpha1.ManagedResource) error {
		if err := managed.Applied(mr); err != nil {
			return err
		}
		if replacesAuthorities(h.shoot) { // one that has the old credentials only would be shut out by the next step
			if err := managed.RolledOut(mr); err != nil {
				return err
			}
		}
		return managed.Healthy(mr)
	})
}

func (h *hosted) deployTunnelServer(ctx context.Context, replicas int32) error {
	image, err := h.gardenerImage()
	if err != nil {
		return err
	}
	objects, err := vpnseedserver.Objects(vpnseedserver.Values{
		Namespace: h.namespace, Image: image, Replicas: replicas, Spread: h.spread(),
		ServerSecret: h.set.Name(credentials.VPNSeedServer), CASecret: h.set.BundleName(constants.SecretNameCAVPN), Host: h.tunnelHost(),
	})
	if err != nil {
		return err
	}
	return h.apply(ctx, objects...)
}

// pool is a worker pool with what its machines are made from.
type pool struct {
	worker corev1beta1.Worker
	hash   string
	// provision and reconcile are what the extension for the operating system has made of it.
	provision, reconcile *extensionsv1alpha1.OperatingSystemConfig
}

// rotation is when credentials were rotated that the machines of a pool hold.
func rotation(shoot *corev1beta1.Shoot, pool string) operatingsystemconfig.Rotation {
	var r operatingsystemconfig.Rotation
	if m := shoot.Status.ManualWorkerPoolRollout; m != nil {
		r.Rollout = rotatedFor(pool, nil, m.PendingWorkersRollouts)
	}
	if c := shoot.Status.Credentials; c != nil && c.Rotation != nil {
		if ca := c.Rotation.CertificateAuthorities; ca != nil {
			r.CertificateAuthorities = rotatedFor(pool, ca.LastInitiationTime, ca.PendingWorkersRollouts)
		}
		if key := c.Rotation.ServiceAccountKey; key != nil {
			r.ServiceAccountKey = rotatedFor(pool, key.LastInitiationTime, key.PendingWorkersRollouts)
		}
	}
	return r
}

// orderSystemConfigs has the extensions for operating systems say how machines become nodes.
func (h *hosted) orderSystemConfigs(ctx context.Context) error {
	values, pools, err := h.systemConfigValues()
	if err != nil {
		return err
	}
	objects, err := operatingsystemconfig.Objects(values)
	if err != nil {
		return err
	}
	order := make([]func(context.Context) error, 0, len(objects))
	for _, object := range objects {
		want := object.(*extensionsv1alpha1.OperatingSystemConfig) //nolint:forcetypeassert // the component renders nothing else
		obj := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}
		index := slices.IndexFunc(pools, func(p pool) bool {
			return operatingsystemconfig.Name(p.worker.Name, p.hash, want.Spec.Purpose) == want.Name
		})
		if want.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
			pools[index].provision = obj
		} else {
			pools[index].reconcile = obj
		}
		order = append(order, func(ctx context.Context) error {
			if err := extensionobject.Order(ctx, h.orders(true), obj, func(obj *extensionsv1alpha1.OperatingSystemConfig) {
				class := obj.Spec.Class
				obj.Labels, obj.Spec = want.Labels, want.Spec
				obj.Spec.Class = class
			}); err != nil {
				return err
			}
			return extensionobject.Await(ctx, h.orders(true), obj)
		})
	}
	if err := flow.Parallel(ctx, order...); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pools = pools
	return nil
}

func (h *hosted) systemConfigValues() (operatingsystemconfig.Values, []pool, error) {
	spec := h.shoot.Spec
	agent, err := h.gardenerImage()
	if err != nil {
		return operatingsystemconfig.Values{}, nil, err
	}
	pause, err := h.Images.Find("pause", imagevector.Query{})
	if err != nil {
		return operatingsystemconfig.Values{}, nil, err
	}
	dns, err := h.dnsServers()
	if err != nil {
		return operatingsystemconfig.Values{}, nil, err
	}
	v := operatingsystemconfig.Values{
		Namespace: h.namespace, KubernetesVersion: spec.Kubernetes.Version, APIServerURL: "https://" + h.hosts()[0],
		ClusterCABundle: h.set.Bundle(constants.SecretNameCACluster), KubeletCABundle: h.set.Bundle(constants.SecretNameCAKubelet),
		ClusterDNS: dns, Kubelet: spec.Kubernetes.Kubelet, NodeAgentImage: agent, SandboxImage: pause.String(), Rotation: rotation(h.shoot, ""),
	}
	for _, key := range []*corev1.Secret{h.set.Current(constants.SecretNameSSHKeyPair), h.set.Old(constants.SecretNameSSHKeyPair)} {
		if key != nil && h.shoot.Spec.Provider.SSHAccessEnabled() {
			v.SSHPublicKeys = append(v.SSHPublicKeys, strings.TrimSpace(string(key.Data[secrets.DataKeySSHAuthorizedKeys])))
		}
	}
	pools := make([]pool, 0, len(spec.Provider.Workers))
	for _, worker := range spec.Provider.Workers {
		hash, err := operatingsystemconfig.PoolHash(operatingsystemconfig.LatestHashVersion, &worker, spec.Kubernetes.Version, spec.Kubernetes.Kubelet, nodelocaldns.Enabled(h.shoot), rotation(h.shoot, worker.Name))
		if err != nil {
			return v, nil, fmt.Errorf("worker pool %q: %w", worker.Name, err)
		}
		kubelet, err := h.Images.Find("hyperkube", imagevector.Query{TargetVersion: operatingsystemconfig.KubernetesVersion(&worker, spec.Kubernetes.Version)})
		if err != nil {
			return v, nil, err
		}
		p := operatingsystemconfig.Pool{Worker: worker, Hash: hash, KubeletImage: kubelet.String(), Labels: h.nodeLabels(&worker, hash)}
		if p.KubeletDataVolumeSize, err = kubeletVolume(&worker); err != nil {
			return v, nil, err
		}
		v.Pools, pools = append(v.Pools, p), append(pools, pool{worker: worker, hash: hash})
	}
	return v, pools, nil
}

// kubeletVolume is the size of the disk for the data of the kubelet, if the pool has one.
func kubeletVolume(worker *corev1beta1.Worker) (*int64, error) {
	for _, volume := range worker.DataVolumes {
		if volume.Name != deref(worker.KubeletDataVolumeName) {
			continue
		}
		size, err := resource.ParseQuantity(volume.VolumeSize)
		if err != nil {
			return nil, fmt.Errorf("size of data volume %q of worker pool %q: %w", volume.Name, worker.Name, err)
		}
		return new(size.Value()), nil
	}
	return nil, nil
}

// dnsServers are where pods ask for names.
func (h *hosted) dnsServers() ([]net.IP, error) {
	networks, err := systemcomponent.NetworksOf(h.shoot)
	if err != nil {
		return nil, err
	}
	if nodelocaldns.Enabled(h.shoot) {
		return []net.IP{nodelocaldns.Address(networks).AsSlice()}, nil
	}
	var list []net.IP
	for _, address := range networks.DNS() {
		list = append(list, address.AsSlice())
	}
	return list, nil
}

// nodeLabels are those by which the nodes of a pool are known. Source: constants, and the contract of the Worker.
func (h *hosted) nodeLabels(worker *corev1beta1.Worker, hash string) map[string]string {
	labels := map[string]string{}
	for key, value := range worker.Labels {
		labels[key] = value
	}
	labels["node.kubernetes.io/role"] = "node"
	labels[corev1.LabelArchStable] = deref(worker.Machine.Architecture)
	if labels[corev1.LabelArchStable] == "" {
		labels[corev1.LabelArchStable] = constants.ArchitectureAMD64
	}
	labels[constants.WorkerPool], labels[constants.WorkerPoolDeprecated] = worker.Name, worker.Name
	labels[constants.WorkerKubernetesVersion] = operatingsystemconfig.KubernetesVersion(worker, h.shoot.Spec.Kubernetes.Version)
	labels[constants.WorkerPoolGardenerNodeAgentSecretName] = operatingsystemconfig.SecretName(worker.Name, hash)
	labels[constants.WorkerPoolSystemComponents] = fmt.Sprint(worker.SystemComponents == nil || worker.SystemComponents.Allow)
	labels[constants.NodeLocalDNS] = fmt.Sprint(nodelocaldns.Enabled(h.shoot))
	if worker.CRI != nil {
		labels[constants.WorkerCRIName] = string(worker.CRI.Name)
		for _, runtime := range worker.CRI.ContainerRuntimes {
			labels["containerruntime.worker.gardener.cloud/"+runtime.Type] = "true"
		}
	}
	return labels
}

// deployNodeAgents tells the agents on nodes what to do, also those on nodes that are about to be replaced.
func (h *hosted) deployNodeAgents(ctx context.Context) error {
	all := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := h.SeedClient.List(ctx, all, client.InNamespace(h.namespace)); err != nil {
		return fmt.Errorf("list OperatingSystemConfigs: %w", err)
	}
	var objects []client.Object
	access := operatingsystemconfig.AccessValues{Authorizer: true}
	for i := range all.Items {
		osc := &all.Items[i]
		if osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeReconcile || osc.DeletionTimestamp != nil {
			continue
		}
		name, hash := osc.Labels[constants.WorkerPool], hashOf(osc)
		secret, err := operatingsystemconfig.NodeAgentSecret(name, hash, osc, func(name, key string) ([]byte, error) {
			content := &corev1.Secret{}
			if err := h.SeedClient.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, content); err != nil {
				return nil, err
			}
			return content.Data[key], nil
		})
		if err != nil {
			return err
		}
		objects, access.SecretNames = append(objects, secret), append(access.SecretNames, secret.Name)
	}
	return h.manage(ctx, operatingsystemconfig.ManagedResourceName, append(objects, operatingsystemconfig.Access(access)...)...)
}

// awaitNodeAgents waits until the agents on nodes report that what they are told is done. They do it one after the other, within minutes.
func (h *hosted) awaitNodeAgents(ctx context.Context) error {
	if h.hibernated() {
		return nil // The nodes go.
	}
	if err := h.applied(operatingsystemconfig.ManagedResourceName)(ctx); err != nil {
		return err
	}
	shoot, err := h.connect(ctx)
	if err != nil {
		return err
	}
	secrets := &corev1.SecretList{}
	if err := shoot.List(ctx, secrets, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{
		constants.GardenRole: constants.GardenRoleOperatingSystemConfig,
	}); err != nil {
		return fmt.Errorf("list what node agents are told: %w", err)
	}
	told := map[string]string{}
	for i := range secrets.Items {
		told[secrets.Items[i].Name] = secrets.Items[i].Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumDownloadedOperatingSystemConfig]
	}
	return kube.Await(ctx, shoot, &corev1.NodeList{}, func(nodes []*corev1.Node) error { return behind(nodes, told) }, nil)
}

// behind names the nodes whose agents have not done yet what they are told. Nodes that nothing new will come to do not count.
func behind(nodes []*corev1.Node, told map[string]string) error {
	var names []string
	for _, node := range nodes {
		want := told[node.Labels[constants.WorkerPoolGardenerNodeAgentSecretName]]
		if want == "" || node.DeletionTimestamp != nil || node.Spec.Unschedulable {
			continue
		}
		if node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig] != want {
			names = append(names, node.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%d nodes do not have their new configuration yet: %s", len(names), strings.Join(names[:min(len(names), named)], ", "))
}

// hashOf is the hash of a pool in the name of its OperatingSystemConfig.
func hashOf(osc *extensionsv1alpha1.OperatingSystemConfig) string {
	rest := strings.TrimPrefix(osc.Name, operatingsystemconfig.SecretName(osc.Labels[constants.WorkerPool], ""))
	hash, _, _ := strings.Cut(strings.TrimPrefix(rest, "-"), "-")
	return hash
}

// manage writes a ManagedResource for the shoot.
func (h *hosted) manage(ctx context.Context, name string, objects ...client.Object) error {
	packed, err := managedresource.Objects(h.SeedClient.Scheme(), managedresource.Values{
		Namespace: h.namespace, Name: name, InjectLabels: map[string]string{constants.ShootNoCleanup: "true"},
	}, objects...)
	if err != nil {
		return err
	}
	return h.apply(ctx, packed...)
}

// dropStaleSystemConfigs deletes what machines were made from that are no more.
func (h *hosted) dropStaleSystemConfigs(ctx context.Context) error {
	all := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := h.SeedClient.List(ctx, all, client.InNamespace(h.namespace)); err != nil {
		return fmt.Errorf("list OperatingSystemConfigs: %w", err)
	}
	var drop []func(context.Context) error
	for i := range all.Items {
		osc := &all.Items[i]
		wanted := slices.ContainsFunc(h.pools, func(p pool) bool { return osc.Name == p.provision.Name || osc.Name == p.reconcile.Name })
		if !wanted {
			drop = append(drop, func(ctx context.Context) error { return undo(ctx, h, osc) })
		}
	}
	if len(drop) == 0 {
		return nil
	}
	if err := flow.Parallel(ctx, drop...); err != nil {
		return err
	}
	return h.deployNodeAgents(ctx)
}

// orderWorker has the extension for the infrastructure make machines.
func (h *hosted) orderWorker(ctx context.Context) error {
	pools := make([]extensionsv1alpha1.WorkerPool, 0, len(h.pools))
	for i := range h.pools {
		p, err := h.workerPool(&h.pools[i])
		if err != nil {
			return err
		}
		pools = append(pools, *p)
	}
	obj := &extensionsv1alpha1.Worker{ObjectMeta: h.infrastructureObject().ObjectMeta}
	if err := extensionobject.Order(ctx, h.orders(true), obj, func(obj *extensionsv1alpha1.Worker) {
		obj.Spec.DefaultSpec = ordered(obj.Spec.Class, h.shoot.Spec.Provider.Type, nil)
		obj.Spec.Region, obj.Spec.SecretRef, obj.Spec.InfrastructureProviderStatus = h.shoot.Spec.Region, h.providerSecret(), h.infrastructureStatus()
		if key := h.set.Current(constants.SecretNameSSHKeyPair); key != nil && h.shoot.Spec.Provider.SSHAccessEnabled() {
			obj.Spec.SSHPublicKey = key.Data[secrets.DataKeySSHAuthorizedKeys]
		}
		obj.Spec.Pools = pools
	}); err != nil {
		return err
	}
	return extensionobject.Await(ctx, h.orders(true), obj)
}

// workerPool says of a pool what its extension has to know.
func (h *hosted) workerPool(p *pool) (*extensionsv1alpha1.WorkerPool, error) {
	if p.provision.Status.CloudConfig == nil {
		return nil, fmt.Errorf("OperatingSystemConfig %q has no user data, although its extension says that it is done", p.provision.Name)
	}
	worker, kubernetes := &p.worker, h.shoot.Spec.Kubernetes
	version := operatingsystemconfig.KubernetesVersion(worker, kubernetes.Version)
	w := &extensionsv1alpha1.WorkerPool{
		Name: worker.Name, MachineType: worker.Machine.Type, Minimum: worker.Minimum, Maximum: worker.Maximum,
		MaxSurge: orDefault(worker.MaxSurge, 1), MaxUnavailable: orDefault(worker.MaxUnavailable, 0),
		Annotations: worker.Annotations, Labels: h.nodeLabels(worker, p.hash), Taints: worker.Taints,
		NodeAgentSecretName: new(operatingsystemconfig.SecretName(worker.Name, p.hash)), ProviderConfig: worker.ProviderConfig,
		UserDataSecretRef: corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.provision.Status.CloudConfig.SecretRef.Name}, Key: extensionsv1alpha1.OperatingSystemConfigSecretDataKey,
		},
		KubeletDataVolumeName: worker.KubeletDataVolumeName, Zones: worker.Zones, MachineControllerManager: worker.MachineControllerManager,
		KubernetesVersion: &version, KubeletConfig: worker.KubeletConfig(kubernetes.Kubelet), Architecture: worker.Machine.Architecture,
		Priority: worker.Priority, UpdateStrategy: worker.UpdateStrategy, NodeTemplate: h.nodeTemplate(worker),
	}
	if image := worker.Machine.Image; image != nil {
		w.MachineImage = &extensionsv1alpha1.MachineImage{Name: image.Name, Version: deref(image.Version)}
	}
	if v := worker.Volume; v != nil {
		w.Volume = &extensionsv1alpha1.Volume{Name: v.Name, Type: v.Type, Size: v.VolumeSize, Encrypted: v.Encrypted}
	}
	for _, v := range worker.DataVolumes {
		w.DataVolumes = append(w.DataVolumes, extensionsv1alpha1.DataVolume{Name: v.Name, Type: v.Type, Size: v.VolumeSize, Encrypted: v.Encrypted})
	}
	if c := worker.ClusterAutoscaler; c != nil {
		w.ClusterAutoscaler = &extensionsv1alpha1.ClusterAutoscalerOptions{
			ScaleDownUtilizationThreshold: decimal(c.ScaleDownUtilizationThreshold), ScaleDownGPUUtilizationThreshold: decimal(c.ScaleDownGpuUtilizationThreshold),
			ScaleDownUnneededTime: c.ScaleDownUnneededTime, ScaleDownUnreadyTime: c.ScaleDownUnreadyTime, MaxNodeProvisionTime: c.MaxNodeProvisionTime,
		}
	}
	return w, nil
}

func orDefault(value *intstr.IntOrString, number int) intstr.IntOrString {
	if value == nil {
		return intstr.FromInt(number)
	}
	return *value
}

// decimal writes a number as resources of extensions have it, which know no fractions.
func decimal(value *float64) *string {
	if value == nil {
		return nil
	}
	return new(fmt.Sprint(*value))
}

// nodeTemplate is what a node of a pool offers, as far as the CloudProfile knows.
func (h *hosted) nodeTemplate(worker *corev1beta1.Worker) *extensionsv1alpha1.NodeTemplate {
	if h.world.cloudProfile == nil {
		return nil
	}
	for _, machine := range h.world.cloudProfile.Spec.MachineTypes {
		if machine.Name != worker.Machine.Type {
			continue
		}
		template := &extensionsv1alpha1.NodeTemplate{Capacity: corev1.ResourceList{
			corev1.ResourceCPU: machine.CPU, corev1.ResourceMemory: machine.Memory, "gpu": machine.GPU,
		}}
		if storage := machine.Storage; storage != nil && storage.StorageSize != nil {
			template.Capacity[corev1.ResourceEphemeralStorage] = *storage.StorageSize
		}
		if volume := worker.Volume; volume != nil {
			if size, err := resource.ParseQuantity(volume.VolumeSize); err == nil {
				template.Capacity[corev1.ResourceEphemeralStorage] = size
			}
		}
		return template
	}
	return nil
}

// cores is how many cores the machines of all pools have, as far as the CloudProfile knows.
func (h *hosted) cores() (cores int64) {
	for i := range h.shoot.Spec.Provider.Workers {
		worker := &h.shoot.Spec.Provider.Workers[i]
		if template := h.nodeTemplate(worker); template != nil {
			cores += int64(worker.Minimum) * template.Capacity.Cpu().Value()
		}
	}
	return cores
}

// deploySystemComponents writes what runs on nodes, but for kube-proxy.
func (h *hosted) deploySystemComponents(ctx context.Context) error {
	network, err := h.networkObjects()
	if err != nil {
		return err
	}
	dns, err := coredns.For(h.shoot)
	if err != nil {
		return err
	}
	dns.Cores = h.cores()
	if dns.Image, err = h.image("coredns"); err != nil {
		return err
	}
	dnsObjects, err := coredns.Objects(dns)
	if err != nil {
		return err
	}
	metrics := metricsserver.Values{
		Certificate: h.certificate(credentials.MetricsServer), Key: h.key(credentials.MetricsServer),
		CABundle: h.set.Bundle(constants.SecretNameCAMetricsServer), KubeletCABundle: h.set.Bundle(constants.SecretNameCAKubelet),
	}
	if metrics.Image, err = h.image("metrics-server"); err != nil {
		return err
	}
	metricsObjects, err := metricsserver.Objects(metrics)
	if err != nil {
		return err
	}
	errs := []error{
		h.manage(ctx, networkResource, network...),
		h.manage(ctx, coredns.ManagedResourceName, dnsObjects...),
		h.manage(ctx, metricsserver.ManagedResourceName, metricsObjects...),
		h.deployNodeLocalDNS(ctx),
	}
	return errors.Join(errs...)
}

// networkObjects are both ends of the ways between nodes and control plane that are in the shoot.
func (h *hosted) networkObjects() ([]client.Object, error) {
	image, err := h.gardenerImage()
	if err != nil {
		return nil, err
	}
	networks, err := systemcomponent.NetworksOf(h.shoot)
	if err != nil {
		return nil, err
	}
	server := net.JoinHostPort(h.hosts()[0], httpsPort)
	agent, err := vpnshoot.Objects(vpnshoot.Values{
		Image: image, Replicas: h.pods(), Server: server, ServerName: h.tunnelHost(),
		Certificate: h.certificate(credentials.VPNShootClient), Key: h.key(credentials.VPNShootClient), CABundle: h.set.Bundle(constants.SecretNameCAVPN),
		Networks: h.allNetworks(),
	})
	if err != nil {
		return nil, err
	}
	proxy, err := apiserverproxy.Objects(apiserverproxy.Values{
		Address: apiserverproxy.AdvertiseAddress(networks), Image: image, Server: server, ServerName: h.tunnelHost(),
		Certificate: h.certificate(credentials.APIServerProxy), Key: h.key(credentials.APIServerProxy), CABundle: h.set.Bundle(constants.SecretNameCAVPN),
	})
	if err != nil {
		return nil, err
	}
	return append(agent, proxy...), nil
}

// allNetworks are the ranges of nodes, pods and Services.
func (h *hosted) allNetworks() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := withChosen(h.shoot.Status.Networking, h.infra)
	all := slices.Concat(n.Nodes, n.Pods, n.Services)
	slices.Sort(all)
	return slices.Compact(all)
}

// withChosen are the networks of a Shoot with those that its infrastructure has chosen, which count instead.
func withChosen(networks *corev1beta1.NetworkingStatus, infrastructure *extensionsv1alpha1.Infrastructure) *corev1beta1.NetworkingStatus {
	n := &corev1beta1.NetworkingStatus{}
	if networks != nil {
		n = networks.DeepCopy()
	}
	if infrastructure == nil {
		return n
	}
	chosen := infrastructure.Status
	if cidr := chosen.NodesCIDR; cidr != nil {
		n.Nodes = []string{*cidr}
	}
	if from := chosen.Networking; from != nil {
		for _, list := range []struct {
			to   *[]string
			from []string
		}{{&n.Nodes, from.Nodes}, {&n.Pods, from.Pods}, {&n.Services, from.Services}} {
			if len(list.from) > 0 {
				*list.to = list.from
			}
		}
	}
	n.EgressCIDRs = chosen.EgressCIDRs
	return n
}

// publishNetworks writes the networks that the infrastructure has chosen into the status of the Shoot.
func (h *hosted) publishNetworks(ctx context.Context, chosen *extensionsv1alpha1.Infrastructure) error {
	before := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: h.shoot.Namespace, Name: h.shoot.Name}}
	before.Status.Networking = h.shoot.Status.Networking
	after := before.DeepCopy()
	after.Status.Networking = withChosen(before.Status.Networking, chosen)
	if apiequality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	if err := h.gardenClient.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write networks of the infrastructure into the status: %w", err)
	}
	return nil
}

// deployNodeLocalDNS writes the caches for DNS.
func (h *hosted) deployNodeLocalDNS(ctx context.Context) error {
	if !nodelocaldns.Enabled(h.shoot) {
		return nil // There may be nodes that need theirs, see dropNodeLocalDNS.
	}
	v, err := nodelocaldns.For(h.shoot)
	if err != nil {
		return err
	}
	if v.Image, err = h.image("coredns"); err != nil {
		return err
	}
	if v.SetupImage, err = h.image("kube-proxy"); err != nil {
		return err
	}
	objects, err := nodelocaldns.Objects(v)
	if err != nil {
		return err
	}
	return h.manage(ctx, nodelocaldns.ManagedResourceName, objects...)
}

// dropNodeLocalDNS removes the caches for DNS of a shoot that is to have none, once there are no nodes whose pods ask them.
func (h *hosted) dropNodeLocalDNS(ctx context.Context) error {
	caches := &resourcesv1alpha1.ManagedResource{}
	err := h.SeedClient.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: nodelocaldns.ManagedResourceName}, caches)
	if nodelocaldns.Enabled(h.shoot) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ManagedResource %q: %w", nodelocaldns.ManagedResourceName, err)
	}
	shoot, err := h.connect(ctx)
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes, client.MatchingLabels(nodelocaldns.NodeLabels())); err != nil {
		return fmt.Errorf("list nodes with DNS caches: %w", err)
	}
	if len(nodes.Items) > 0 {
		return nil
	}
	return h.unmanage(ctx, nodelocaldns.ManagedResourceName)
}

// unmanage removes a ManagedResource, and with it what is in the shoot.
func (h *hosted) unmanage(ctx context.Context, name string) error {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
	if err := h.SeedClient.Delete(ctx, mr); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// deployKubeProxy writes the kube-proxies of all pools, and of nodes that are about to go.
func (h *hosted) deployKubeProxy(ctx context.Context) error {
	shoot, err := h.connect(ctx)
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := shoot.List(ctx, nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	v, err := kubeproxy.For(h.shoot, nodes.Items, func(version string) (string, error) {
		image, err := h.Images.Find("kube-proxy", imagevector.Query{TargetVersion: version})
		return image.String(), err
	})
	if err != nil {
		return err
	}
	if v.Disabled {
		return h.unmanage(ctx, kubeproxy.ManagedResourceName)
	}
	v.APIServer, v.CABundle = h.hosts()[0], h.set.Bundle(constants.SecretNameCACluster)
	objects, err := kubeproxy.Objects(v)
	if err != nil {
		return err
	}
	return h.manage(ctx, kubeproxy.ManagedResourceName, objects...)
}

func (h *hosted) certificate(name string) []byte {
	return h.set.Current(name).Data[secrets.DataKeyCertificate]
}

func (h *hosted) key(name string) []byte { return h.set.Current(name).Data[secrets.DataKeyPrivateKey] }
