package addon

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
			Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: ptr.To[int32](443)},
			// Its certificate is made by itself at every start.
			InsecureSkipTLSVerify: true,
		},
	}
	w := workload{
		name: name, namespace: namespace, priority: "system-cluster-critical",
		container: corev1.Container{
			Image: image,
			Args: []string{
				"--secure-port=10250", "--cert-dir=/tmp", "--metric-resolution=10s", "--kubelet-request-timeout=5s", // Half of what it has by itself: a node is known sooner.
				"--kubelet-preferred-address-types=InternalIP",
				"--kubelet-insecure-tls", // kubeadm's kubelets sign their own serving certificates.
			},
			Ports:          []corev1.ContainerPort{{Name: "https", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			Resources:      requests("10m", "48Mi"),
			ReadinessProbe: httpProbe("/readyz", port, corev1.URISchemeHTTPS),
			StartupProbe:   eager(httpProbe("/readyz", port, corev1.URISchemeHTTPS)),
			LivenessProbe:  httpProbe("/livez", port, corev1.URISchemeHTTPS),
			VolumeMounts:   []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		},
		volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	objects := clusterRole(namespace, name, rule("", "nodes/metrics", "get"), rule("", "pods nodes", "get list watch"))
	reader := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "landscape:metrics-reader", Labels: map[string]string{
		"app.kubernetes.io/name":                       name,
		"rbac.authorization.k8s.io/aggregate-to-admin": "true", "rbac.authorization.k8s.io/aggregate-to-edit": "true", "rbac.authorization.k8s.io/aggregate-to-view": "true",
	}}, Rules: []rbacv1.PolicyRule{rule("metrics.k8s.io", "pods nodes", "get list watch")}}
	authReader := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "landscape:metrics-server:auth-reader", Labels: labels(name)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	delegator := clusterRoleBinding(namespace, name, "landscape:metrics-server:auth-delegator", "system:auth-delegator")
	return append(objects, reader, authReader, delegator, service, w.deployment(), apiService), nil
}
