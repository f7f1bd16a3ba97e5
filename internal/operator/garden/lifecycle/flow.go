package lifecycle

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/exposure"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/apiserver"
	"gardener.cloud/gardener/internal/stage/controlplane"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/etcd"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	"gardener.cloud/gardener/pkg/flow"
)

// autoscalerServer is the credential with the server certificate of vpa-admission-controller.
const autoscalerServer = "vpa-admission-controller-server"

// state is what one pass works with.
type state struct {
	*reconciler
	garden *operatorv1alpha1.Garden
	// source makes the values of components, and set their credentials.
	source values.Source
	set    *credentials.Set
	run    *stage.Run
	// desired are the Extensions of the garden itself, and stale those that exist although it has them no longer.
	desired, stale []extension.Extension
	// records are the names that lead to the gateway.
	records []record
}

// runtimeFlow deploys what the runtime cluster needs to host control planes.
func (s *state) runtimeFlow() (*flow.Flow, error) {
	in := s.systemComponents()
	tasks := append(systemcomponents.Tasks(in),
		flow.Do("credentials-runtime", "Creating the CA and the credentials of the runtime cluster", func(ctx context.Context) error {
			if err := s.set.Open(ctx); err != nil {
				return err
			}
			return s.set.Runtime(ctx)
		}, "namespace"),
	)
	return flow.New("Garden reconciliation of the runtime cluster", tasks...)
}

// systemComponents are the inputs for the components that the runtime cluster shares with a seed in it.
func (s *state) systemComponents() *systemcomponents.Inputs {
	in := &systemcomponents.Inputs{
		API: s.RuntimeAPI, FieldManager: fieldManager, Images: s.SystemImages, Replicas: s.source.Replicas(),
		NamespaceMetadata: metav1.ObjectMeta{Labels: map[string]string{resourcesv1alpha1.HighAvailabilityConfigConsider: "true"}},
		// Control planes of shoots may run here, too, and system components have priorities of seeds.
		PriorityClasses: append(priorityclass.Garden(), priorityclass.Seed()...),
		Afterwards:      []string{"credentials-runtime"}, ResourceManager: s.source.RuntimeResourceManager,
		Certificates: func(context.Context) (systemcomponents.Certificates, error) {
			set, err := s.set.OfRuntime()
			if err != nil {
				return systemcomponents.Certificates{}, err
			}
			return systemcomponents.Certificates{CABundle: set.Bundle(operatorv1alpha1.SecretNameCARuntime), Autoscaler: set.Name(autoscalerServer)}, nil
		},
		Autoscaler: s.autoscaler(), TerminateTLS: s.TerminateTLS,
	}
	if zones := s.garden.Spec.RuntimeCluster.Provider.Zones; len(zones) > 0 {
		in.NamespaceMetadata.Annotations = map[string]string{resourcesv1alpha1.HighAvailabilityConfigZones: strings.Join(zones, ",")}
	}
	if c := s.Config.Controllers.Garden.ETCDConfig; c != nil && c.ETCDController != nil {
		in.EtcdWorkers = int(ptr.Deref(c.ETCDController.Workers, 0))
	}
	if settings := s.garden.Spec.RuntimeCluster.Settings; settings != nil && settings.LoadBalancerServices != nil {
		services := settings.LoadBalancerServices
		in.LoadBalancer = systemcomponents.LoadBalancer{
			Annotations: services.Annotations, ExternalTrafficPolicy: ptr.Deref(services.ExternalTrafficPolicy, ""),
			ProxyProtocol: services.ProxyProtocol != nil && services.ProxyProtocol.Allowed,
		}
	}
	return in
}

// autoscaler configures the Vertical Pod Autoscaler. Nil means that the cluster gets none.
func (s *state) autoscaler() *corev1beta1.VerticalPodAutoscaler {
	if !values.Autoscaled(s.garden) {
		return nil
	}
	config := &corev1beta1.VerticalPodAutoscaler{}
	if settings := s.garden.Spec.RuntimeCluster.Settings; settings != nil && settings.VerticalPodAutoscaler != nil {
		config.FeatureGates, config.MaxAllowed = settings.VerticalPodAutoscaler.FeatureGates, settings.VerticalPodAutoscaler.MaxAllowed
	}
	return config
}

// credentialValues are those of the credentials of a Garden.
func (r *reconciler) credentialValues(garden *operatorv1alpha1.Garden) credentials.Values {
	var servers []credentials.Server
	if values.Autoscaled(garden) {
		servers = append(servers, credentials.Server{
			Name: autoscalerServer, Hosts: verticalpodautoscaler.ServerNames(constants.GardenNamespace), CA: operatorv1alpha1.SecretNameCARuntime,
		})
	}
	return values.Credentials(garden, r.RuntimeAPI, r.Clock, servers...)
}

// virtualFlow deploys the control plane of the virtual cluster, and the components of Gardener in it. It comes after runtimeFlow.
func (s *state) virtualFlow() (*flow.Flow, error) {
	tasks := slices.Concat(
		[]flow.Task{
			flow.Do("etcd-volumes", "Checking whether the keys for the data of etcd exist", s.checkVolumes),
			flow.Do("credentials-etcd", "Creating credentials of etcd", s.set.Etcd, "etcd-volumes"),
			flow.Do("credentials", "Creating all other credentials", s.set.Rest, "credentials-etcd"),
			flow.Do("generic-kubeconfig", "Publishing the name of the generic token kubeconfig", s.publishGenericKubeconfig, "credentials"),
			flow.Do("exposure", "Exposing kube-apiserver through the gateway", func(ctx context.Context) error {
				return s.run.Apply(ctx, s.exposure()...)
			}),
		},
		s.backupTasks(),    // the extension's part
		s.dnsRecordTasks(), // the gateway is there
		etcd.Tasks(s.etcdInputs()),
		apiserver.Tasks(s.apiServerInputs()),           // after the credentials; while CAs are replaced, after etcd
		controlplane.Tasks(s.controlPlaneInputs()),     // after kube-apiserver is ready
		apiserver.EncryptionTasks(s.apiServerInputs()), // after all pods of kube-apiserver have the new keys, and have their tokens
		s.gardenerTasks(),                              // after the resource manager of the virtual cluster is ready
		s.extensionTasks(),                             // before kube-apiserver, or when it is ready
		s.seedTasks(),                                  // when gardener-apiserver is ready
	)
	tasks = append(tasks, flow.Do("credentials-cleanup", "Deleting unused credentials", s.set.Cleanup, flow.Last(tasks)...))
	return flow.New("Garden reconciliation", tasks...)
}

// exposure are the routes of the names of kube-apiserver.
func (s *state) exposure() []client.Object {
	of := instance.VirtualGarden
	return exposure.Objects(exposure.Values{Namespace: constants.GardenNamespace, Hosts: s.source.Routes(), Service: of.Name(kubeapiserver.Name), Port: 443})
}

func (s *state) etcdInputs() etcd.Inputs {
	return etcd.Inputs{Run: s.run, Values: s.source.Etcd, Replicas: s.source.Members(), Ready: etcd.Healthy}
}

// apiServerInputs are those of the kube-apiserver.
func (s *state) apiServerInputs() apiserver.Inputs {
	rewrites := s.source.PreparesEncryptionKey() || s.source.ChangesEncryption()
	in := apiserver.Inputs{
		Run: s.run, Credentials: s.set, Replicas: s.source.APIServerReplicas(), IfPresent: extension.Inputs{Desired: s.desired}.IDsBeforeAPIServer(),
		Values: func(ctx context.Context, replicas int32) (kubeapiserver.Values, error) {
			files, err := values.ReadFiles(ctx, s.RuntimeAPI, s.garden)
			if err != nil {
				return kubeapiserver.Values{}, err
			}
			return s.source.KubeAPIServer(replicas, files)
		},
		ReplacesKeys: s.source.PreparesServiceAccountKey() || rewrites,
		Encryption:   apiserver.Encryption{Desired: s.source.Encryption, Mark: s.source.EncryptionMark, Rewrite: rewrites},
	}
	if s.source.ReplacesCAs() { // an etcd that does not trust the new CA yet rejects a kube-apiserver with its certificate
		in.After = []string{etcd.MainReadyTask, etcd.EventsReadyTask}
	}
	if s.source.EncryptsMore() {
		in.Encryption.Former = s.source.FormerEncryption
	}
	if key := s.encryptionKeyRotation(); key != nil && key.Phase == corev1beta1.RotationCompleting && s.source.Backup() != nil {
		in.Encryption.Backup, in.Encryption.BackupSince = true, key.LastInitiationFinishedTime
	}
	return in
}

func (s *state) encryptionKeyRotation() *corev1beta1.ETCDEncryptionKeyRotation {
	if c := s.garden.Status.Credentials; c != nil && c.Rotation != nil {
		return c.Rotation.ETCDEncryptionKey
	}
	return nil
}

func (s *state) controlPlaneInputs() controlplane.Inputs {
	rotation := controlplane.Rotation{CA: s.source.ReplacesCAs()} // there is no controller for static tokens
	accesses := []string{gardenerapiserver.Name}
	for _, c := range s.components() {
		accesses = append(accesses, c.name)
	}
	return controlplane.Inputs{
		Run: s.run, Credentials: s.set, Replicas: s.source.Replicas(), ResourceManager: s.source.ResourceManager,
		KubeControllerManager: s.source.KubeControllerManager, Resources: s.source.Resources, Kubeconfigs: s.source.Kubeconfigs(), Rotation: rotation,
		Accesses: accesses,
	}
}

// genericKubeconfig is the Secret with the generic token kubeconfig of the virtual cluster.
func (s *state) genericKubeconfig() (string, error) {
	set, err := s.set.All()
	if err != nil {
		return "", err
	}
	return set.Name(constants.SecretNameGenericTokenKubeconfig), nil
}

// publishGenericKubeconfig writes the name of the generic token kubeconfig to the Garden: extensions mount that Secret beside the control plane.
func (s *state) publishGenericKubeconfig(ctx context.Context) error {
	name, err := s.genericKubeconfig()
	if err != nil {
		return err
	}
	return kube.PatchMetadata(ctx, s.RuntimeAPI, s.garden, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, extensionsv1alpha1.AnnotationGenericKubeconfigSecretName, name)
	})
}
