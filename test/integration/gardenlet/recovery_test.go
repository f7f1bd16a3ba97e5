package gardenlet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/gardenctl"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// TestRecovery brings a Shoot of a lost seed up on another one. When the lost seed comes back, its gardenlet fences what is
// left of it.
func TestRecovery(t *testing.T) {
	f := newFleet(t)
	garden, shoot, entry := f.garden, f.shoot, f.entry
	kubeconfig := env.KubeconfigFile(t, f.e.Config)
	recoverShoots := func(args ...string) (code int, output string) {
		if len(args) == 0 {
			args = []string{"--to=to"}
		}
		var out bytes.Buffer
		code = gardenctl.Run(t.Context(), gardenctl.Options{
			Program: gardenctl.Name, In: strings.NewReader(""), Out: &out, ErrOut: &out, ConfigDir: t.TempDir(), CacheDir: t.TempDir(),
			Kubeconfig: kubeconfig, Clock: clock.RealClock{},
		}, append([]string{"recover", "--seed=from", "--yes"}, args...))
		return code, out.String()
	}
	step := env.Story(t)
	step("a seed that reports is not lost")
	env.EditStatus(t, garden, entry, func(b *corev1beta1.BackupEntry) {
		b.Status.SeedName, b.Status.LastOperation = new("from"), &corev1beta1.LastOperation{Type: "Create", State: "Succeeded", LastUpdateTime: metav1.Now()}
	})
	if code, output := recoverShoots(); code != 1 || !strings.Contains(output, "is not lost") {
		t.Fatalf("exit code %d, output:\n%s", code, output)
	}

	step("whether the backups of a shoot are complete whose restoration there had not ended is for an operator to see")
	env.EditStatus(t, garden, f.from, func(s *corev1beta1.Seed) { s.Status.Conditions[0].Status = corev1beta1.ConditionUnknown })
	env.EditStatus(t, garden, shoot, func(s *corev1beta1.Shoot) {
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Restore", State: "Processing", LastUpdateTime: metav1.Now()}
	})
	env.Edit(t, garden, entry, func(b *corev1beta1.BackupEntry) {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, constants.BackupEntryCopiedFrom, "former")
	})
	if code, output := recoverShoots(); code != 1 || !strings.Contains(output, `bucket "former"`) {
		t.Fatalf("exit code %d, output:\n%s", code, output)
	}
	env.Edit(t, garden, entry, func(b *corev1beta1.BackupEntry) { delete(b.Annotations, constants.BackupEntryCopiedFrom) })

	step("a shoot whose deletion had begun is abandoned, with what the lost gardenlet would have released")
	abandoned, entryOfAbandoned, state := deletedShoot(t, f)
	if code, output := recoverShoots("--abandon", "--shoot=garden-dev/moved"); code != 1 || !strings.Contains(output, "it is not being deleted") {
		t.Errorf("of a shoot that is not deleted: exit code %d, output:\n%s", code, output)
	}
	if code, output := recoverShoots("--abandon", "--shoot=garden-dev/deleted"); code != 0 || !strings.Contains(output, "look for machines") {
		t.Fatalf("exit code %d, output:\n%s", code, output)
	}
	env.AwaitGone(t, garden, abandoned)
	env.AwaitGone(t, garden, entryOfAbandoned)
	env.AwaitGone(t, garden, state)

	step("the shoot of a lost seed is handed over, without its Bastion")
	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bastion", Finalizers: []string{constants.FinalizerGardenerName}},
		Spec: operationsv1alpha1.BastionSpec{
			SeedName: new("from"), ProviderType: new(builder.Local), ShootRef: corev1.LocalObjectReference{Name: shoot.Name},
			SSHPublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJuMh7s0ehb9vbrCEbzHAZCLmnF9J1LD3aTfh4n0YrFy me",
			Ingress:      []operationsv1alpha1.BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}}},
		},
	}
	if err := garden.Create(t.Context(), bastion); err != nil {
		t.Fatal(err)
	}
	if code, output := recoverShoots(); code != 0 || !strings.Contains(output, "is restored on seed to") || !strings.Contains(output, "bastion bastion of shoot moved") {
		t.Fatalf("exit code %d, output:\n%s", code, output)
	}
	env.AwaitGone(t, garden, bastion)
	if code, output := recoverShoots(); code != 0 || !strings.Contains(output, "No shoots to recover") {
		t.Errorf("the second time: exit code %d, output:\n%s", code, output)
	}

	step("the other seed restores it while the gardenlet of the lost one is back")
	former, other := startAgent(t, f.e, "from"), startAgent(t, f.e, "to")
	env.Await(t, other.seed, env.Named[*corev1.Secret](technicalID, "kept"), env.Exists)
	env.Await(t, other.seed, env.Named[*druidv1alpha1.Etcd](technicalID, "etcd-main"), env.Exists)
	env.Await(t, garden, entry, func(b *corev1beta1.BackupEntry) error {
		if b.Spec.BucketName != string(f.to.UID) || ptr.Deref(b.Status.SeedName, "") != "to" || b.Annotations[constants.BackupEntryNoFinalSnapshot] != "" {
			return fmt.Errorf("it is in bucket %q with annotations %v and status %+v", b.Spec.BucketName, b.Annotations, b.Status)
		}
		return nil
	})
	env.AwaitGone(t, garden, &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "source-" + entry.Name}})
	env.Await(t, garden, shoot, last("Restore", "Processing", ""))
	entries := &extensionsv1alpha1.BackupEntryList{}
	if err := former.seed.List(t.Context(), entries); err != nil || len(entries.Items) > 0 {
		t.Errorf("the lost seed has %d BackupEntries: %v", len(entries.Items), err)
	}
	if err := former.seed.Get(t.Context(), client.ObjectKey{Name: technicalID}, &corev1.Namespace{}); err == nil {
		t.Error("the lost seed has a namespace for the shoot")
	}

	step("what the lost seed still has of its control plane does not act on machines and DNS records, that of another shoot does")
	stays := builder.Shoot("stays", builder.In(namespace), builder.On("from"))
	if err := garden.Create(t.Context(), stays); err != nil {
		t.Fatal(err)
	}
	untouched := controlPlane(t, former.seed, "shoot--dev--stays", stays)
	fenced := controlPlane(t, former.seed, technicalID, shoot)
	env.Await(t, former.seed, fenced, func(d *appsv1.Deployment) error {
		if *d.Spec.Replicas != 0 || len(d.Annotations) > 0 {
			return fmt.Errorf("it has %d replicas and annotations %v", *d.Spec.Replicas, d.Annotations)
		}
		return nil
	})
	env.Await(t, former.seed, env.Named[*extensionsv1alpha1.DNSRecord](technicalID, "record"), func(r *extensionsv1alpha1.DNSRecord) error {
		if l := r.Status.LastOperation; l == nil || l.Type != "Migrate" || l.State != "Succeeded" {
			return fmt.Errorf("its last operation is %+v", l)
		}
		return nil
	})
	env.AwaitList(t, garden, func(events []*eventsv1.Event) error {
		for _, e := range events {
			if e.Reason == "ControlPlaneFenced" && e.Regarding.Name == "from" && strings.Contains(e.Note, technicalID) {
				return nil
			}
		}
		return errors.New("the Seed has no event")
	})
	if err := former.seed.Get(t.Context(), client.ObjectKeyFromObject(untouched), untouched); err != nil || *untouched.Spec.Replicas != 1 {
		t.Errorf("the Deployment of the other shoot has %d replicas: %v", *untouched.Spec.Replicas, err)
	}
}

// controlPlane creates what the fence looks at: a Namespace with a Cluster, a DNSRecord, and a Deployment that dependency-watchdog would scale up, which it
// returns.
func controlPlane(t *testing.T, seed client.WithWatch, name string, shoot *corev1beta1.Shoot) *appsv1.Deployment {
	t.Helper()
	raw := func(object any) runtime.RawExtension {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	shoot = shoot.DeepCopy()
	shoot.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("Shoot"))
	pod := map[string]string{"app": "x"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "machine-controller-manager", Annotations: map[string]string{
			constants.DependencyWatchdogMeltdownProtectionActive: "",
		}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: pod},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}},
		},
	}
	for _, object := range []client.Object{
		&extensionsv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       extensionsv1alpha1.ClusterSpec{Shoot: raw(shoot), CloudProfile: raw(map[string]any{}), Seed: new(raw(map[string]any{}))},
		},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{constants.GardenRole: constants.GardenRoleShoot}}},
		deployment,
		&extensionsv1alpha1.DNSRecord{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "record"},
			Spec: extensionsv1alpha1.DNSRecordSpec{
				DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: builder.Local}, Name: "api.example.com", RecordType: "A", Values: []string{"10.0.0.1"},
			},
		},
	} {
		if err := seed.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	return deployment
}

// deletedShoot creates a Shoot on the first seed that is being deleted while it is created, and returns it with what it has in the garden.
func deletedShoot(t *testing.T, f *fleet) (*corev1beta1.Shoot, *corev1beta1.BackupEntry, *corev1beta1.ShootState) {
	t.Helper()
	const technicalID = "shoot--dev--deleted"
	keep := func(o metav1.ObjectMeta) metav1.ObjectMeta {
		o.Namespace, o.Finalizers = namespace, []string{constants.FinalizerGardenerName}
		return o
	}
	shoot := builder.Shoot("deleted", builder.In(namespace), builder.On("from"))
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.ConfirmationDeletion, "true")
	if err := f.garden.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	env.Edit(t, f.garden, shoot, func(s *corev1beta1.Shoot) { s.Finalizers = append(s.Finalizers, constants.FinalizerGardenerName) })
	env.EditStatus(t, f.garden, shoot, func(s *corev1beta1.Shoot) {
		s.Status.SeedName, s.Status.TechnicalID, s.Status.UID = new("from"), technicalID, s.UID
		s.Status.LastOperation = &corev1beta1.LastOperation{Type: "Create", State: "Processing", Progress: 40, LastUpdateTime: metav1.Now()}
	})
	entry := &corev1beta1.BackupEntry{
		ObjectMeta: keep(metav1.ObjectMeta{Name: technicalID + "--" + string(shoot.UID)}),
		Spec:       corev1beta1.BackupEntrySpec{BucketName: string(f.from.UID), SeedName: new("from")},
	}
	state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shoot.Name}}
	for _, object := range []client.Object{entry, state} {
		if err := f.garden.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.garden.Delete(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	return shoot, entry, state
}
