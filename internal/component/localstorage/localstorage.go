// Package localstorage renders local-storage, which provisions volumes as directories of the node that a pod was scheduled to, and its StorageClass.
// Rendering is pure.
package localstorage

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// Name is the name of the DaemonSet in kube-system.
	Name = "local-storage"
	// StorageClass is the name of the storage class, which is the default of its cluster.
	StorageClass = "local"
	provisioner  = "local-storage.gardener.cloud"
	directory    = "/var/lib/containerd/local-storage" // on the machine's own disk, beside the data of containers
)

// Values are what local-storage is deployed with.
type Values struct {
	// Image is the image of local-storage.
	Image string
	// ClusterRole is the name of the ClusterRole.
	ClusterRole string
}

// Class returns the StorageClass.
func Class() *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: StorageClass, Labels: workload.Labels(Name), Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       provisioner,
		ReclaimPolicy:     new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
}

// Objects renders the DaemonSet with its permissions.
func Objects(v Values) []client.Object {
	w := workload.Workload{
		Name: Name, Namespace: metav1.NamespaceSystem, PriorityClass: "system-node-critical",
		Container: corev1.Container{
			Image: v.Image,
			Args:  []string{"--directory=" + directory, "--name=" + provisioner},
			Env:   []corev1.EnvVar{workload.FieldEnv("NODE_NAME", "spec.nodeName")},
			// It creates directories for the users of pods, and deletes what these, root included, wrote into them.
			SecurityContext: &corev1.SecurityContext{
				RunAsUser: new(int64(0)), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE", "FOWNER", "CHOWN"}},
			},
			Resources:    workload.Requests("5m", "24Mi"),
			VolumeMounts: []corev1.VolumeMount{{Name: "storage", MountPath: directory}},
		},
		Volumes: []corev1.Volume{workload.HostPath("storage", directory, corev1.HostPathDirectoryOrCreate)},
	}
	set := w.DaemonSet()
	set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	role := w.ClusterRole(v.ClusterRole,
		workload.Rule("", "persistentvolumes", "get list watch create patch update delete"),
		workload.Rule("", "persistentvolumeclaims", "get list watch update delete"), // delete when the node of a volume is gone
		workload.Rule("storage.k8s.io", "storageclasses", "get list watch"),
		workload.Rule("", "nodes", "get list watch"),
		workload.Rule("", "events", "create patch update"),
		workload.Rule("events.k8s.io", "events", "create patch update"),
	)
	return append(append([]client.Object{w.ServiceAccount()}, role...), set)
}
