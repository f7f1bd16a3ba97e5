// Package gardeneradmissioncontroller deploys gardener-admission-controller, which authorizes gardenlets and has webhooks of the garden.
package gardeneradmissioncontroller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/secrets"
)

// Name is the name of the Deployment, the Service and the webhook configurations.
const Name = "gardener-admission-controller"

const (
	webhookPort = 2719
	healthPort  = 2722
	metricsPort = 2723

	serverCertDir = "/etc/gardener/certificates"
	clientCADir   = "/etc/gardener/client-ca"
)

// Values are what the admission controller is deployed with.
type Values struct {
	// Namespace is where it runs.
	Namespace string
	// Image is the image with all processes of Gardener.
	Image string
	// Replicas is the number of pods. All of them serve.
	Replicas int32
	// Config is its configuration. Objects overwrites ports, paths of files, `qps` and `burst`.
	Config admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration
	// Certificate is the Secret with the serving certificate for DNSNames, tls.crt and tls.key.
	Certificate string
	// ClientCA is the Secret with the CA bundle of the client certificates that requests for authorization need. Empty means that they are
	// not authenticated.
	ClientCA string
	// Autoscaled renders a VerticalPodAutoscaler.
	Autoscaled bool
	// Virtual says that it works in a virtual garden. Then Objects renders what belongs into the cluster that it runs in, and TargetObjects what
	// belongs into the virtual garden. Nil means that both are the same cluster.
	Virtual *gardenerprocess.Virtual
	// CABundle has the CA certificates of Certificate, for the webhooks in a virtual garden.
	CABundle []byte
}

// URL is where the kube-apiserver of a virtual garden, which runs in the same namespace, reaches the server.
func URL(namespace string) string { return "https://" + Name + "." + namespace }

// DNSNames are the names that clients use for the server in a namespace.
func DNSNames(namespace string) []string { return append(workload.DNSNames(Name, namespace), Name) }

// Objects renders the admission controller for the cluster that it runs in.
func Objects(v Values) ([]client.Object, error) {
	process := v.process()
	objects, err := process.Objects()
	if err != nil {
		return nil, err
	}
	service := process.Workload().Service("https", 443)
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
		Name: "metrics", Port: metricsPort, TargetPort: intstr.FromString("metrics"), Protocol: corev1.ProtocolTCP,
	})
	objects = append(objects, process.Reachable(service, []int32{webhookPort}, []int32{metricsPort}))
	if v.Virtual != nil {
		return objects, nil
	}
	return append(objects, v.bindings()...), nil
}

// TargetObjects renders what the admission controller needs in a virtual garden: the bindings of its roles, which gardenrbac has, and the webhook
// configurations.
func TargetObjects(v Values) []client.Object {
	endpoint := Endpoint{URL: URL(v.Namespace), CABundle: v.CABundle}
	return append(v.bindings(), Webhooks(endpoint, v.Config.Server.ResourceAdmissionConfiguration)...)
}

func (v Values) process() gardenerprocess.Values {
	config := v.Config.DeepCopy()
	config.APIVersion, config.Kind = admissioncontrollerconfigv1alpha1.SchemeGroupVersion.String(), "AdmissionControllerConfiguration"
	config.Server.Webhooks = admissioncontrollerconfigv1alpha1.HTTPSServer{
		Server: admissioncontrollerconfigv1alpha1.Server{Port: webhookPort},
		TLS:    admissioncontrollerconfigv1alpha1.TLSServer{ServerCertDir: serverCertDir},
	}
	config.Server.HealthProbes = &admissioncontrollerconfigv1alpha1.Server{Port: healthPort}
	config.Server.Metrics = &admissioncontrollerconfigv1alpha1.Server{Port: metricsPort}
	config.GardenClientConnection.QPS, config.GardenClientConnection.Burst = 100, 130
	if v.Virtual != nil {
		config.GardenClientConnection.Kubeconfig = shootaccess.PathKubeconfig
	}
	files := []gardenerprocess.File{{Volume: workload.SecretVolume("certificates", v.Certificate), Path: serverCertDir}}
	if v.ClientCA != "" {
		files = append(files, gardenerprocess.File{Volume: workload.SecretVolume("client-ca", v.ClientCA), Path: clientCADir})
		config.Server.Webhooks.TLS.ClientCAFile = new(clientCADir + "/" + secrets.DataKeyCertificateBundle)
	}
	return gardenerprocess.Values{
		Name: Name, Role: "admission-controller", Namespace: v.Namespace, Image: v.Image, Replicas: v.Replicas,
		PriorityClass: constants.PriorityClassNameGardenSystem400, Config: config, Files: files,
		Ports: []corev1.ContainerPort{
			{Name: "https", ContainerPort: webhookPort, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: metricsPort, Protocol: corev1.ProtocolTCP},
		},
		Ready: workload.HTTPProbe("/readyz", healthPort, corev1.URISchemeHTTP), Live: workload.HTTPProbe("/healthz", healthPort, corev1.URISchemeHTTP),
		Resources:        workload.Requests("100m", "200Mi"),
		HighAvailability: resourcesv1alpha1.HighAvailabilityConfigTypeServer, Autoscaled: v.Autoscaled, Virtual: v.Virtual,
	}
}

// bindings bind its roles in the cluster that it works in.
func (v Values) bindings() []client.Object {
	const role = "gardener.cloud:system:admission-controller"
	w := v.process().Target()
	objects := []client.Object{w.ClusterRoleBinding("gardener.cloud:admission-controller", role)}
	if ptr.Deref(v.Config.Server.EnableDebugHandlers, false) {
		// It authenticates and authorizes users of the debug pages.
		objects = append(objects, w.ClusterRoleBinding("gardener.cloud:admission-controller:auth-delegator", "system:auth-delegator"))
	}
	return objects
}

// Configuration returns the configuration that a Garden asks for. It may be nil.
func Configuration(
	config *operatorv1alpha1.GardenerAdmissionControllerConfig,
) admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration {
	out := admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration{}
	if config == nil {
		return out
	}
	out.LogLevel = ptr.Deref(config.LogLevel, "")
	given := config.ResourceAdmissionConfiguration
	if given == nil {
		return out
	}
	resources := &admissioncontrollerconfigv1alpha1.ResourceAdmissionConfiguration{UnrestrictedSubjects: slices.Clone(given.UnrestrictedSubjects)}
	for _, limit := range given.Limits {
		resources.Limits = append(resources.Limits, admissioncontrollerconfigv1alpha1.ResourceLimit(*limit.DeepCopy()))
	}
	if mode := given.OperationMode; mode != nil {
		resources.OperationMode = new(admissioncontrollerconfigv1alpha1.ResourceAdmissionWebhookMode(*mode))
	}
	out.Server.ResourceAdmissionConfiguration = resources
	return out
}
