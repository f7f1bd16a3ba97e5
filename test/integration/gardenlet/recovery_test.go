package gardenlet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/gardenctl"
	"gardener.cloud/gardener/test/env"
)

// TestRecovery brings a Shoot of a lost seed up on another one. When the lost seed comes back, its gardenlet does nothing for the Shoot.
func TestRecovery(t *testing.T) {
	f := newFleet(t)
	garden, shoot, entry := f.garden, f.shoot, f.entry
	kubeconfig := env.KubeconfigFile(t, f.e.Config)
	recoverShoots := func() (code int, output string) {
		var out bytes.Buffer
		code = gardenctl.Run(t.Context(), gardenctl.Options{
			Program: gardenctl.Name, In: strings.NewReader(""), Out: &out, ErrOut: &out, ConfigDir: t.TempDir(), CacheDir: t.TempDir(),
			Kubeconfig: kubeconfig, Clock: clock.RealClock{},
		}, []string{"recover", "--seed=from", "--to=to", "--yes"})
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

	step("the shoot of a lost seed is handed over")
	if code, output := recoverShoots(); code != 0 || !strings.Contains(output, "is restored on seed to") {
		t.Fatalf("exit code %d, output:\n%s", code, output)
	}
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
}
