package addon

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// StorageClass is the name of the default storage class.
	StorageClass = "local"
	provisioner  = "local-storage.gardener.cloud"
	storageDir   = "/var/lib/containerd/local-storage" // On the machine's own disk, beside the data of containers.
)

// localStorage provisions volumes as directories of the node that a pod was scheduled to.
func localStorage(v Values) ([]client.Object, error) {
	image, err := v.image("local-storage")
	if err != nil {
		return nil, err
	}
	const name, namespace = "local-storage", "kube-system"
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: StorageClass, Labels: labels(name), Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       provisioner,
		ReclaimPolicy:     new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
	}
	w := workload.Workload{
		Name: name, Namespace: namespace, PriorityClass: "system-node-critical",
		Container: corev1.Container{
			Image: image,
			Args:  []string{"--directory=" + storageDir, "--name=" + provisioner},
			Env:   []corev1.EnvVar{workload.FieldEnv("NODE_NAME", "spec.nodeName")},
			// It creates directories for the users of pods, and deletes what these, root included, wrote into them.
			SecurityContext: &corev1.SecurityContext{
				RunAsUser: new(int64(0)), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE", "FOWNER", "CHOWN"}},
			},
			Resources:    workload.Requests("5m", "24Mi"),
			VolumeMounts: []corev1.VolumeMount{{Name: "storage", MountPath: storageDir}},
		},
		Volumes: []corev1.Volume{workload.HostPath("storage", storageDir, corev1.HostPathDirectoryOrCreate)},
	}
	set := w.DaemonSet()
	set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	objects := clusterRole(w,
		workload.Rule("", "persistentvolumes", "get list watch create patch update delete"),
		workload.Rule("", "persistentvolumeclaims", "get list watch update delete"), // delete when the node of a volume is gone
		workload.Rule("storage.k8s.io", "storageclasses", "get list watch"),
		workload.Rule("", "nodes", "get list watch"),
		workload.Rule("", "events", "create patch update"),
		workload.Rule("events.k8s.io", "events", "create patch update"),
	)
	return append(objects, class, set), nil
}
