package addon

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

// metricsServer serves what pods and nodes use, for kubectl top and autoscalers.
func metricsServer(v Values) ([]client.Object, error) {
	image, err := v.image("metrics-server")
	if err != nil {
		return nil, err
	}
	const name, namespace, port = "metrics-server", "kube-system", 10250
	service := &corev1.Service{ObjectMeta: meta(namespace, name), Spec: corev1.ServiceSpec{
		Selector: labels(name),
		Ports:    []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromInt(port), Protocol: corev1.ProtocolTCP}},
	}}
	apiService := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1beta1.metrics.k8s.io", Labels: labels(name)},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "metrics.k8s.io", Version: "v1beta1", GroupPriorityMinimum: 100, VersionPriority: 100,
			Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: new(int32(443))},
			// It generates a self-signed certificate at every start.
			InsecureSkipTLSVerify: true,
		},
	}
	w := workload.Workload{
		Name: name, Namespace: namespace, Replicas: 1, PriorityClass: "system-cluster-critical",
		Container: corev1.Container{
			Image: image,
			Args: []string{
				"--secure-port=10250", "--cert-dir=/tmp", "--metric-resolution=10s", "--kubelet-request-timeout=5s", // Half of its default, so that a new node has metrics sooner.
				"--kubelet-preferred-address-types=InternalIP",
				"--kubelet-insecure-tls", // kubeadm's kubelets sign their own serving certificates.
			},
			Ports:          []corev1.ContainerPort{{Name: "https", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			Resources:      workload.Requests("10m", "48Mi"),
			ReadinessProbe: workload.HTTPProbe("/readyz", port, corev1.URISchemeHTTPS),
			StartupProbe:   workload.Eager(workload.HTTPProbe("/readyz", port, corev1.URISchemeHTTPS)),
			LivenessProbe:  workload.HTTPProbe("/livez", port, corev1.URISchemeHTTPS),
			VolumeMounts:   []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		},
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	objects := clusterRole(w, workload.Rule("", "nodes/metrics", "get"), workload.Rule("", "pods nodes", "get list watch"))
	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "landscape:metrics-reader", Labels: map[string]string{
		"app.kubernetes.io/name":                       name,
		"rbac.authorization.k8s.io/aggregate-to-admin": "true", "rbac.authorization.k8s.io/aggregate-to-edit": "true", "rbac.authorization.k8s.io/aggregate-to-view": "true",
	}}, Rules: []rbacv1.PolicyRule{workload.Rule("metrics.k8s.io", "pods nodes", "get list watch")}}
	authReader := w.RoleBinding(namespace, "landscape:metrics-server:auth-reader", "extension-apiserver-authentication-reader")
	delegator := w.ClusterRoleBinding("landscape:metrics-server:auth-delegator", "system:auth-delegator")
	return append(objects, reader, authReader, delegator, service, w.Deployment(), apiService), nil
}
