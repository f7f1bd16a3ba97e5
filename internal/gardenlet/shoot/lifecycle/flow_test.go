package lifecycle

import (
	"testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/golden"
)

// example is what is known of a shoot with everything.
func example() *world {
	shoot := &corev1beta1.Shoot{}
	shoot.Name, shoot.Namespace, shoot.UID = "crazy-botany", "garden-dev", "1"
	shoot.Spec.Provider = corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{Name: "a"}}}
	return &world{
		shoot: shoot, seed: &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Backup: &corev1beta1.Backup{}}},
		project: "dev", namespace: "shoot--dev--crazy-botany", hasNamespace: true,
		internal: &domain{name: "crazy-botany.dev.internal.example.com", provider: "local"},
		external: &domain{name: "crazy-botany.dev.example.com", provider: "local"},
		extensions: []extensionOrder{
			{typ: "early", reconcile: corev1beta1.BeforeKubeAPIServer, remove: corev1beta1.AfterKubeAPIServer},
			{typ: "late", reconcile: corev1beta1.AfterWorker, remove: corev1beta1.BeforeKubeAPIServer},
			{typ: "usual", reconcile: corev1beta1.AfterKubeAPIServer, remove: corev1beta1.BeforeKubeAPIServer},
		},
	}
}

func TestFlows(t *testing.T) {
	for name, change := range map[string]func(*world){
		"hosted": func(*world) {},
		"settled": func(w *world) {
			w.shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}
		},
		"workerless": func(w *world) { w.shoot.Spec.Provider.Workers, w.extensions = nil, nil },
		"rotating": func(w *world) {
			w.shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				CertificateAuthorities: &corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing},
				ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationPreparing},
			}}
		},
		"completing": func(w *world) {
			w.shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationCompleting},
			}}
		},
		"asked": func(w *world) {
			w.shoot.Annotations = map[string]string{"shoot.gardener.cloud/tasks": "deployInfrastructure,restartControlPlanePods,restartCoreAddons"}
			w.issuer = "https://keys.example.com"
			w.shoot.Spec.Resources = []corev1beta1.NamedResourceReference{{Name: "x"}}
			w.shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"configmaps"}}}
			w.shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{}}
		},
		"waking": func(w *world) {
			w.shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}
			w.shoot.Status.Hibernated = true
		},
		"sleeping": func(w *world) {
			w.shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}
			w.shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
		},
		"hibernated": func(w *world) {
			w.shoot.Spec.Hibernation, w.shoot.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, true
			w.stopped = true
		},
		"leftover": func(w *world) {
			w.stale = []extensionOrder{{typ: "former", remove: corev1beta1.AfterKubeAPIServer}, {typ: "removed", remove: corev1beta1.BeforeKubeAPIServer}}
		},
		"unmanaged": func(w *world) {
			w.shoot.Spec.Provider.Workers, w.extensions = nil, nil
			w.external.provider, w.seed.Spec.Backup = "unmanaged", nil
		},
	} {
		w := example()
		change(w)
		f, err := (&reconciler{}).reconcileFlow(w)
		if err != nil {
			t.Fatal(err)
		}
		golden.Text(t, "flows/"+name+".txt", f.String())
		f, err = (&reconciler{}).deletionFlow(w)
		if err != nil {
			t.Fatal(err)
		}
		golden.Text(t, "flows/"+name+"-deletion.txt", f.String())
	}
	f, err := (&reconciler{}).forcedFlow(example())
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/forced-deletion.txt", f.String())
}
