// Package metricsserver deploys metrics-server into a shoot: what nodes and pods use, for kubectl top and autoscalers.
//
// All connections are verified: metrics-server has a server certificate of its own CA, and verifies kubelets with the CA that signs their
// certificates.
package metricsserver

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/systemcomponent"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/pkg/immutable"
	"gardener.cloud/gardener/pkg/references"
)

const (
	// ManagedResourceName is the name of the ManagedResource with all objects.
	ManagedResourceName = "shoot-core-metrics-server"
	// Name is the name of the Deployment and of the Service.
	Name = "metrics-server"
	// CredentialName is the name of its server certificate, signed by constants.SecretNameCAMetricsServer.
	CredentialName = "metrics-server"

	port        int32 = 8443
	servicePort int32 = 443

	serverVolume, serverDir   = "server", "/etc/metrics-server/server"
	kubeletVolume, kubeletDir = "kubelet-ca", "/etc/metrics-server/kubelet-ca"
	keyKubeletCA              = "ca.crt"

	priority = "system-cluster-critical"
	roleName = "gardener.cloud:system:metrics-server"
)

// Values are what metrics-server is deployed with.
type Values struct {
	// Image is the image of metrics-server.
	Image string
	// Certificate and Key are those of its server, as PEM, valid for ServerNames.
	Certificate, Key []byte
	// CABundle is the CA bundle with which the API server verifies it, and KubeletCABundle the one with which it verifies kubelets, as PEM.
	CABundle, KubeletCABundle []byte
}

// ServerNames are the names that its certificate has to be valid for.
func ServerNames() []string { return workload.DNSNames(Name, metav1.NamespaceSystem) }

// Objects renders metrics-server.
func Objects(v Values) ([]client.Object, error) {
	server := immutable.Secret(metav1.NamespaceSystem, Name, map[string][]byte{
		corev1.TLSCertKey: v.Certificate, corev1.TLSPrivateKeyKey: v.Key,
	})
	server.Type = corev1.SecretTypeTLS
	server.Labels = workload.Merge(systemcomponent.Labels(), server.Labels)
	kubelets := immutable.ConfigMap(metav1.NamespaceSystem, Name+"-"+kubeletVolume, map[string]string{keyKubeletCA: string(v.KubeletCABundle)})
	kubelets.Labels = workload.Merge(systemcomponent.Labels(), kubelets.Labels)
	w := v.workload(server.Name, kubelets.Name)
	deployment := w.Deployment()
	deployment.Labels = workload.Merge(systemcomponent.Labels(), w.Labels, map[string]string{
		resourcesv1alpha1.HighAvailabilityConfigType: resourcesv1alpha1.HighAvailabilityConfigTypeServer,
	})
	// It does not use the cluster's DNS server, whose autoscaler needs metrics.
	deployment.Spec.Template.Spec.DNSPolicy = corev1.DNSDefault
	if err := references.Inject(deployment, nil); err != nil {
		return nil, err
	}
	service := w.Service("https", servicePort)
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(port)
	objects := append([]client.Object{w.ServiceAccount(), server, kubelets}, w.ClusterRole(roleName,
		workload.Rule("", "nodes/metrics", "get"), workload.Rule("", "pods nodes", "get list watch"),
	)...)
	return append(objects,
		w.RoleBinding(metav1.NamespaceSystem, roleName+":auth-reader", "extension-apiserver-authentication-reader"),
		w.ClusterRoleBinding(roleName+":auth-delegator", "system:auth-delegator"),
		metricsReader(w.Labels), service, deployment,
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: Name, Labels: deployment.Labels},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: new(intstr.FromInt32(1)), Selector: deployment.Spec.Selector,
				UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			},
		},
		&apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: "v1beta1.metrics.k8s.io", Labels: workload.Merge(systemcomponent.Labels(), w.Labels)},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: "metrics.k8s.io", Version: "v1beta1", GroupPriorityMinimum: 100, VersionPriority: 100, CABundle: v.CABundle,
				Service: &apiregistrationv1.ServiceReference{Namespace: metav1.NamespaceSystem, Name: Name, Port: new(servicePort)},
			},
		},
	), nil
}

func (v Values) workload(server, kubelets string) workload.Workload {
	ready := workload.HTTPProbe("/readyz", int(port), corev1.URISchemeHTTPS)
	return workload.Workload{
		Name: Name, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": Name}, Replicas: 2, PriorityClass: priority,
		PodLabels: systemcomponent.PodLabels(
			constants.NetworkPolicyToDNS, constants.NetworkPolicyShootToAPIServer,
			constants.NetworkPolicyShootToKubelet, constants.NetworkPolicyShootFromSeed,
		),
		Container: corev1.Container{
			Image: v.Image,
			Args: []string{
				"--secure-port=" + strconv.Itoa(int(port)),
				"--tls-cert-file=" + serverDir + "/" + corev1.TLSCertKey, "--tls-private-key-file=" + serverDir + "/" + corev1.TLSPrivateKeyKey,
				"--kubelet-certificate-authority=" + kubeletDir + "/" + keyKubeletCA,
				// Certificates of kubelets are valid for addresses too, which need no resolver.
				"--kubelet-preferred-address-types=InternalIP,ExternalIP,InternalDNS,ExternalDNS,Hostname",
				// A node has metrics after two intervals. They are shorter than the default, as nothing scales before.
				"--metric-resolution=10s", "--kubelet-request-timeout=8s", "--profiling=false",
			},
			Ports:          []corev1.ContainerPort{{Name: "https", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			Resources:      workload.Requests("20m", "64Mi"),
			ReadinessProbe: ready, StartupProbe: workload.Eager(ready),
			LivenessProbe: workload.HTTPProbe("/livez", int(port), corev1.URISchemeHTTPS),
			VolumeMounts: []corev1.VolumeMount{
				{Name: serverVolume, MountPath: serverDir, ReadOnly: true}, {Name: kubeletVolume, MountPath: kubeletDir, ReadOnly: true},
			},
		},
		Volumes: []corev1.Volume{workload.SecretVolume(serverVolume, server), workload.ConfigMapVolume(kubeletVolume, kubelets)},
	}
}

// metricsReader lets all users who may view workloads view their metrics.
func metricsReader(labels map[string]string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "system:aggregated-metrics-reader", Labels: workload.Merge(systemcomponent.Labels(), labels, map[string]string{
			"rbac.authorization.k8s.io/aggregate-to-admin": "true",
			"rbac.authorization.k8s.io/aggregate-to-edit":  "true",
			"rbac.authorization.k8s.io/aggregate-to-view":  "true",
		})},
		Rules: []rbacv1.PolicyRule{workload.Rule("metrics.k8s.io", "pods nodes", "get list watch")},
	}
}
