package lifecycle

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/test/golden"
)

func TestFlows(t *testing.T) {
	for name, change := range map[string]func(*observed.State){
		"running":    func(*observed.State) {},
		"workerless": func(o *observed.State) { o.Shoot.Spec.Provider.Workers, o.Extensions = nil, nil },
		"elastic":    elastic,
		"hibernating-elastic": func(o *observed.State) {
			elastic(o)
			o.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}
			o.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
		},
		"skip-readiness-elastic": func(o *observed.State) {
			elastic(o)
			o.Shoot.Annotations = map[string]string{"shoot.gardener.cloud/skip-readiness": "true"}
		},
		"rotating": func(o *observed.State) {
			o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				CertificateAuthorities: &corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing},
				ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{Phase: corev1beta1.RotationPreparing},
				ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationPreparing},
			}}
		},
		"completing-service-account-key": func(o *observed.State) {
			o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				ServiceAccountKey: &corev1beta1.ServiceAccountKeyRotation{Phase: corev1beta1.RotationCompleting},
			}}
		},
		"completing-encryption-key": func(o *observed.State) {
			o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationCompleting},
			}}
		},
		"updated-in-place": func(o *observed.State) {
			o.Shoot.Spec.Provider.Workers[0].UpdateStrategy = new(corev1beta1.AutoInPlaceUpdate)
		},
		"requested": func(o *observed.State) {
			o.Shoot.Annotations = map[string]string{"shoot.gardener.cloud/tasks": "deployInfrastructure,restartControlPlanePods,restartCoreAddons"}
			o.Issuer = "https://keys.example.com"
			o.Shoot.Spec.Resources = []corev1beta1.NamedResourceReference{{Name: "x"}}
			o.Shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"configmaps"}}}
			o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{EncryptionAtRest: &corev1beta1.EncryptionAtRest{}}
		},
		"networks-of-the-infrastructure": func(o *observed.State) { o.Shoot.Status.Networking.Nodes = nil },
		"skip-readiness": func(o *observed.State) {
			o.Shoot.Annotations = map[string]string{"shoot.gardener.cloud/skip-readiness": "true"}
		},
		"without-kube-proxy": func(o *observed.State) {
			o.Shoot.Annotations = map[string]string{"shoot.gardener.cloud/tasks": "restartCoreAddons"}
			o.Shoot.Spec.Kubernetes.KubeProxy = &corev1beta1.KubeProxyConfig{Enabled: new(false)}
		},
		"workload-identity": func(o *observed.State) {
			o.CloudProvider = &usercredential.Credential{Kind: usercredential.WorkloadIdentity}
		},
		"waking-up": func(o *observed.State) {
			o.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}
			o.Shoot.Status.Hibernated = true
		},
		"hibernating": func(o *observed.State) {
			o.Shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}
			o.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
		},
		"hibernated": func(o *observed.State) {
			o.Shoot.Spec.Hibernation, o.Shoot.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, true
			o.Stopped = true
		},
		"hibernated-rotating": func(o *observed.State) {
			o.Shoot.Spec.Hibernation, o.Shoot.Status.Hibernated = &corev1beta1.Hibernation{Enabled: new(true)}, true
			o.Stopped = true
			o.Shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				CertificateAuthorities: &corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing},
				ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationPreparing},
			}}
		},
		"stale-extensions": func(o *observed.State) {
			o.StaleExtensions = []extension.Extension{{Type: "former", Delete: corev1beta1.AfterKubeAPIServer}, {Type: "removed", Delete: corev1beta1.BeforeKubeAPIServer}}
		},
		"unmanaged-domain": func(o *observed.State) {
			o.Shoot.Spec.Provider.Workers, o.Extensions = nil, nil
			o.External.Provider, o.Seed.Spec.Backup = "unmanaged", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			change(o)
			f, err := (&reconciler{}).reconcileFlow(o)
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, "flows/"+name+".txt", f.String())
			f, err = (&reconciler{}).deletionFlow(o)
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, "flows/"+name+"-deletion.txt", f.String())
		})
	}
}

// With the feature gate, the gateway gets credentials when kube-apiserver trusts them, also those of a rotation while the shoot is hibernated.
// What tells extensions the kubeconfig, and the pods with it, come after what sends them to the gateway. The owner of a Shoot can disable it.
func TestGatewayTerminatesTLS(t *testing.T) {
	r := &reconciler{}
	r.TerminateTLS = true
	for name, tc := range map[string]struct {
		change func(*observed.State)
		want   string
		// balanced are the tasks before pods that are sent to the gateway.
		balanced []string
	}{
		"running": {
			change: func(*observed.State) {}, want: "gateway-credentials <- exposure, credentials, kube-apiserver-ready",
			balanced: []string{"generic-kubeconfig", "tokens"},
		},
		"hibernated": {change: hibernated, want: "gateway-credentials <- exposure, credentials", balanced: []string{"generic-kubeconfig"}},
		"disabled": {change: func(o *observed.State) {
			o.Shoot.Annotations = map[string]string{constants.ShootDisableIstioTLSTermination: "true"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observedtest.State()
			tc.change(o)
			f, err := r.reconcileFlow(o)
			if err != nil {
				t.Fatal(err)
			}
			var got, balances string
			var after []string
			for line := range strings.Lines(f.String()) {
				id, earlier, _ := strings.Cut(strings.TrimSpace(line), " <- ")
				switch id {
				case "gateway-credentials":
					got = strings.TrimSpace(line)
				case "load-balancing":
					balances = earlier
				}
				if slices.Contains(strings.Split(earlier, ", "), "load-balancing") {
					after = append(after, id)
				}
			}
			if got != tc.want {
				t.Errorf("the task is %q, want %q", got, tc.want)
			}
			if terminates := tc.want != ""; (balances == "exposure") != terminates {
				t.Errorf("load-balancing comes after %q", balances)
			}
			if diff := cmp.Diff(tc.balanced, after, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("what comes after load-balancing (-want +got):\n%s", diff)
			}
		})
	}
	for name, change := range map[string]func(*observed.State){
		"running":    func(*observed.State) {},
		"workerless": func(o *observed.State) { o.Shoot.Spec.Provider.Workers, o.Extensions = nil, nil },
		"hibernated": hibernated,
		"stale-extensions": func(o *observed.State) {
			o.StaleExtensions = []extension.Extension{{Type: "removed", Delete: corev1beta1.BeforeKubeAPIServer}}
		},
		"kube-apiserver-is-gone": func(o *observed.State) { o.Migration.HasAPIServer = false },
		"snapshot-is-taken": func(o *observed.State) {
			o.Migration.HasAPIServer, o.Migration.NeedsSnapshot = false, false
		},
		"namespace-is-gone": func(o *observed.State) { o.Migration = &observed.Migration{} },
	} {
		t.Run("migration/"+name, func(t *testing.T) {
			o := observedtest.State()
			leaves(o)
			change(o)
			f, err := (&reconciler{}).migrationFlow(o)
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, "flows/"+name+"-migration.txt", f.String())
		})
	}
	for name, change := range map[string]func(*observed.State){
		"running":          func(*observed.State) {},
		"workerless":       func(o *observed.State) { o.Shoot.Spec.Provider.Workers, o.Extensions = nil, nil },
		"hibernated":       hibernated,
		"highly-available": highlyAvailable,
		"skip-readiness": func(o *observed.State) {
			o.Shoot.Annotations = map[string]string{"shoot.gardener.cloud/skip-readiness": "true"}
		},
		"backups-are-there": func(o *observed.State) { o.Restoration.SourceBucket = "" },
		"hibernated-highly-available": func(o *observed.State) {
			highlyAvailable(o)
			hibernated(o)
		},
	} {
		t.Run("restoration/"+name, func(t *testing.T) {
			o := observedtest.State()
			o.Restoration = &observed.Restoration{SourceBucket: "there"}
			change(o)
			f, err := (&reconciler{}).reconcileFlow(o)
			if err != nil {
				t.Fatal(err)
			}
			golden.Text(t, "flows/"+name+"-restoration.txt", f.String())
		})
	}
	f, err := (&reconciler{}).forcedFlow(observedtest.State())
	if err != nil {
		t.Fatal(err)
	}
	golden.Text(t, "flows/forced-deletion.txt", f.String())
}

// leaves has a shoot move to another seed.
func leaves(o *observed.State) {
	o.Shoot.Spec.SeedName, o.Shoot.Status.SeedName = new("there"), new("here")
	o.Migration = &observed.Migration{Alive: true, HasAPIServer: true, NeedsSnapshot: true}
}

func hibernated(o *observed.State) {
	o.Shoot.Spec.Hibernation, o.Shoot.Status.Hibernated, o.Stopped = &corev1beta1.Hibernation{Enabled: new(true)}, true, true
}

func highlyAvailable(o *observed.State) {
	o.Shoot.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{
		FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeNode},
	}}
}

// elastic gives a shoot a worker pool whose number of nodes changes, and a Vertical Pod Autoscaler.
func elastic(o *observed.State) {
	o.Shoot.Spec.Kubernetes.VerticalPodAutoscaler = &corev1beta1.VerticalPodAutoscaler{Enabled: true}
	o.Shoot.Spec.Provider.Workers[0].Minimum, o.Shoot.Spec.Provider.Workers[0].Maximum = 1, 3
}

// Each task has what it reads when only the tasks are done that it comes after: what it reads of others is an error.
func TestTasksHaveWhatTheyRead(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds, as the fake of an API server is slow to apply")
	}
	logf.SetLogger(logr.Discard())
	for name, test := range map[string]struct {
		change func(*observed.State)
		flow   func(*reconciler, *observed.State) (*flow.Flow, error)
	}{
		"creation": {workers, (*reconciler).reconcileFlow},
		"creation with networks of the infrastructure": {func(o *observed.State) {
			workers(o)
			o.Shoot.Status.Networking = nil
		}, (*reconciler).reconcileFlow},
		"creation of a workerless shoot": {func(o *observed.State) {
			o.Shoot.Spec.Provider.Workers, o.Extensions, o.Issuer = nil, nil, "https://keys.example.com"
		}, (*reconciler).reconcileFlow},
		"creation of an elastic shoot": {func(o *observed.State) {
			workers(o)
			elastic(o)
		}, (*reconciler).reconcileFlow},
		"hibernation": {func(o *observed.State) {
			workers(o)
			elastic(o)
			o.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
		}, (*reconciler).reconcileFlow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, o := newLandscape(t), complete(test.change)
			if err := l.garden.Create(t.Context(), o.Shoot.DeepCopy()); err != nil { // networks of the infrastructure are written into it
				t.Fatal(err)
			}
			compose := func() *flow.Flow {
				t.Helper()
				f, err := test.flow(l.reconciler, o)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			if _, err := compose().Run(t.Context(), flow.Options{}); err != nil { // what is waited for exists
				t.Fatal(err)
			}
			for line := range strings.Lines(compose().String()) {
				id, _, _ := strings.Cut(strings.TrimSpace(line), " ")
				alone, err := compose().UpTo(id)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := alone.Run(t.Context(), flow.Options{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
