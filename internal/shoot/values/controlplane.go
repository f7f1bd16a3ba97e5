package values

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/dependencywatchdog"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/kubescheduler"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/shootsystem"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/credentials"
)

// ResourceManager returns the values of gardener-resource-manager with a number of pods.
func (s Source) ResourceManager(replicas int32) (resourcemanager.Values, error) {
	shoot := s.Shoot
	image, set, err := s.gardenerImageAndCredentials()
	if err != nil {
		return resourcemanager.Values{}, err
	}
	options := resourcemanager.ShootOptions{
		Namespace: s.Namespace, ClusterIdentity: ptr.Deref(s.Seed.Status.ClusterIdentity, ""), Workerless: shoot.Workerless(),
		SystemComponentsTolerations: systemTolerations(s.State),
		NodeAgentDelay:              &metav1.Duration{Duration: observed.NodeAgentDelay(shoot)},
	}
	if hosts := s.Hosts(); len(hosts) > 0 {
		options.APIServerHost = hosts[0]
	}
	if kubescheduler.BinPacking(shoot.Spec.Kubernetes.KubeScheduler) {
		options.SchedulerName = kubescheduler.BinPackingSchedulerName
	}
	if c := shoot.Spec.Kubernetes.KubeAPIServer; c != nil {
		options.DefaultNotReadyTolerationSeconds, options.DefaultUnreachableTolerationSeconds = c.DefaultNotReadyTolerationSeconds, c.DefaultUnreachableTolerationSeconds
	}
	return resourcemanager.Values{
		Namespace: s.Namespace, Image: image, Replicas: replicas, TrafficDistribution: s.TrafficDistribution(), Config: resourcemanager.ForShoot(options),
		ServerSecret: set.Name(credentials.ResourceManager), CABundle: set.Bundle(constants.SecretNameCACluster),
		Shoot: &resourcemanager.Shoot{GenericKubeconfig: set.Name(constants.SecretNameGenericTokenKubeconfig)},
	}, nil
}

// systemTolerations returns the tolerations that pods of system components need on nodes of the pools for them. The first pods are created
// before the first node, so that its taints are not known then.
func systemTolerations(s *observed.State) []corev1.Toleration {
	var tolerations []corev1.Toleration
	for _, pool := range s.SystemPools() {
		for _, taint := range pool.Taints {
			toleration := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
			if !slices.Contains(tolerations, toleration) {
				tolerations = append(tolerations, toleration)
			}
		}
	}
	return tolerations
}

// KubeControllerManager returns the values of kube-controller-manager with a number of pods.
func (s Source) KubeControllerManager(replicas int32) (kubecontrollermanager.Values, error) {
	image, set, err := s.imageAndCredentials(kubecontrollermanager.Name)
	if err != nil {
		return kubecontrollermanager.Values{}, err
	}
	networks, err := s.networks()
	if err != nil {
		return kubecontrollermanager.Values{}, err
	}
	return kubecontrollermanager.Values{
		Namespace: s.Namespace, Image: image, Replicas: replicas, Spread: s.Spread(), Workerless: s.Shoot.Workerless(),
		Config: s.Shoot.Spec.Kubernetes.KubeControllerManager, ClusterName: s.Namespace,
		PodNetworks: networks.Pods, ServiceNetworks: networks.Services,
		Secrets: kubecontrollermanager.Secrets{
			GenericKubeconfig: set.Name(constants.SecretNameGenericTokenKubeconfig), Server: set.Name(credentials.KubeControllerManager),
			CA: set.BundleName(constants.SecretNameCACluster), ClientCA: set.Name(constants.SecretNameCAClient),
			KubeletCA: set.Name(constants.SecretNameCAKubelet), ServiceAccountKey: set.Name(constants.SecretNameServiceAccountKey),
		},
	}, nil
}

// KubeScheduler returns the values of kube-scheduler with a number of pods.
func (s Source) KubeScheduler(replicas int32) (kubescheduler.Values, error) {
	image, set, err := s.imageAndCredentials(kubescheduler.Name)
	if err != nil {
		return kubescheduler.Values{}, err
	}
	return kubescheduler.Values{
		Namespace: s.Namespace, Image: image, Replicas: replicas, Spread: s.Spread(), Config: s.Shoot.Spec.Kubernetes.KubeScheduler,
		Secrets: kubescheduler.Secrets{
			GenericKubeconfig: set.Name(constants.SecretNameGenericTokenKubeconfig), Server: set.Name(credentials.KubeScheduler),
			ClientCA: set.BundleName(constants.SecretNameCAClient),
		},
	}, nil
}

// System returns the values of what every shoot contains, given the kinds that its kube-apiserver serves.
func (s Source) System(served []*metav1.APIResourceList) (shootsystem.Values, error) {
	shoot := s.Shoot
	encryption, err := s.Encryption()
	if err != nil {
		return shootsystem.Values{}, err
	}
	networks, err := s.networks()
	if err != nil {
		return shootsystem.Values{}, err
	}
	v := shootsystem.Values{
		Resources: served, Workerless: shoot.Workerless(), ClusterIdentity: s.Identity, EncryptedResources: encryption.Resources,
		Info: shootsystem.Info{
			ProjectName: s.Project, ShootName: shoot.Name, Provider: shoot.Spec.Provider.Type, Region: shoot.Spec.Region, KubernetesVersion: s.version(),
			PodNetworks: networks.Pods, ServiceNetworks: networks.Services, NodeNetworks: networks.Nodes,
		},
	}
	if shoot.Spec.DNS != nil {
		v.Info.Domain = ptr.Deref(shoot.Spec.DNS.Domain, "")
	}
	if m := shoot.Spec.Maintenance; m != nil && m.TimeWindow != nil {
		v.Info.MaintenanceBegin, v.Info.MaintenanceEnd = m.TimeWindow.Begin, m.TimeWindow.End
	}
	for _, e := range s.Extensions {
		v.Info.Extensions = append(v.Info.Extensions, e.Type)
	}
	for _, pool := range s.SystemPools() {
		v.Zones = append(v.Zones, pool.Zones...)
	}
	return v, nil
}

// Kubeconfigs returns the Secrets with kubeconfigs for extensions, the gardenlet and the dependency-watchdog, each with its URL of the kube-apiserver.
func (s Source) Kubeconfigs() map[string]string {
	kubeconfigs := map[string]string{
		constants.SecretNameGardener:         "https://" + append(s.Hosts(), s.SeedHost())[0],
		constants.SecretNameGardenerInternal: "https://" + s.SeedHost(),
	}
	if s.watched() {
		kubeconfigs[dependencywatchdog.Access] = "https://" + s.SeedHost()
	}
	return kubeconfigs
}

// watched is whether the dependency-watchdog probes the shoot, while it runs.
func (s Source) watched() bool {
	return !s.Shoot.Workerless() && dependencywatchdog.ProberEnabled(s.Seed)
}

// Resources returns the objects that the shoot contains besides those that every shoot contains, by the name of their ManagedResource.
func (s Source) Resources() (map[string][]client.Object, error) {
	if !s.watched() {
		return nil, nil
	}
	return map[string][]client.Object{dependencywatchdog.ManagedResourceName: dependencywatchdog.TargetObjects()}, nil
}

// Unused returns what Kubeconfigs and Resources have had with other settings of the seed.
func (s Source) Unused() []client.Object {
	if s.watched() {
		return nil
	}
	return []client.Object{
		&resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: dependencywatchdog.ManagedResourceName}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: dependencywatchdog.Access}},
	}
}
