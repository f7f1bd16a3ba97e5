package gardenlet

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestUnsupported(t *testing.T) {
	c := &Config{}
	gardenletconfigv1alpha1.DefaultGardenletConfiguration(c)
	if errs := unsupported(c); len(errs) > 0 {
		t.Errorf("the defaults are refused: %v", errs)
	}
	c = &Config{
		ShootClientConnection: &gardenletconfigv1alpha1.ShootClientConnection{},
		SNI:                   &gardenletconfigv1alpha1.SNI{Ingress: &gardenletconfigv1alpha1.SNIIngress{Namespace: new("other"), ServiceName: new("other")}},
		Logging: &gardenletconfigv1alpha1.Logging{
			Enabled: new(true), VictoriaLogs: &gardenletconfigv1alpha1.VictoriaLogs{Enabled: new(true)},
			ShootNodeLogging:  &gardenletconfigv1alpha1.ShootNodeLogging{ShootPurposes: []corev1beta1.ShootPurpose{"testing"}},
			ShootEventLogging: &gardenletconfigv1alpha1.ShootEventLogging{Enabled: new(true)},
		},
		Monitoring: &gardenletconfigv1alpha1.MonitoringConfig{Shoot: &gardenletconfigv1alpha1.ShootMonitoringConfig{
			RemoteWrite: &gardenletconfigv1alpha1.RemoteWriteMonitoringConfig{URL: "https://example.com"}, ExternalLabels: map[string]string{"a": "b"},
		}},
		ETCDConfig: &gardenletconfigv1alpha1.ETCDConfig{
			BackupCompactionController: &gardenletconfigv1alpha1.BackupCompactionController{
				EnableBackupCompaction: new(true), ActiveDeadlineDuration: &metav1.Duration{Duration: time.Hour},
			},
			FeatureGates: map[string]bool{"Foo": true},
		},
	}
	c.ShootClientConnection.Kubeconfig = "/shoot.yaml"
	gardenletconfigv1alpha1.DefaultGardenletConfiguration(c)
	var got []string
	for _, err := range unsupported(c) {
		got = append(got, err.Field)
	}
	want := []string{
		"shootClientConnection.kubeconfig", "sni.ingress.namespace", "sni.ingress.serviceName", "logging.enabled", "logging.victoriaLogs.enabled",
		"logging.shootEventLogging.enabled", "logging.shootNodeLogging.shootPurposes", "monitoring.shoot.remoteWrite", "monitoring.shoot.externalLabels",
		"etcdConfig.backupCompactionController.enableBackupCompaction", "etcdConfig.featureGates",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unsupported() (-want +got):\n%s", diff)
	}
}

// readers says what reads each field of the configuration. A field without an entry has that of the structure which it is in.
var readers = map[string]string{
	"gardenClientConnection":                     "internal/gardenlet/credentials",
	"seedClientConnection":                       "internal/process",
	"shootClientConnection":                      "shoots.go and shoot/care, but kubeconfig is refused",
	"controllers.cacheSyncTimeout":               "gardenlet.go",
	"controllers.backupBucket":                   "backupbucket",
	"controllers.backupEntry":                    "backupentry",
	"controllers.bastion":                        "bastion",
	"controllers.controllerInstallation":         "controllerinstallation/installation",
	"controllers.controllerInstallationCare":     "controllerinstallation/care",
	"controllers.controllerInstallationRequired": "controllerinstallation/required",
	"controllers.gardenlet":                      "upgrade",
	"controllers.managedSeed":                    "managedseed",
	"controllers.networkPolicy":                  "internal/networkpolicy/general",
	"controllers.seed":                           "seed/system and seed/lease",
	"controllers.seedCare":                       "seed/care",
	"controllers.shoot":                          "shoot/lifecycle",
	"controllers.shootCare":                      "shoot/care",
	"controllers.shootState":                     "shoot/state",
	"controllers.shootStatus":                    "shoot/status",
	"controllers.tokenRequestor":                 "internal/tokenrequestor",
	"controllers.tokenRequestorWorkloadIdentity": "workloadidentity",
	"controllers.vpaEvictionRequirements":        "vpaevictionrequirements",
	"debugging":                                  "internal/process",
	"etcdConfig.backupCompactionController":      "refused, if it is enabled",
	"etcdConfig.backupLeaderElection":            "internal/shoot/values, for Etcds",
	"etcdConfig.custodianController":             "nothing: the status is written by the controller of etcdController",
	"etcdConfig.deltaSnapshotRetentionPeriod":    "internal/shoot/values, for Etcds",
	"etcdConfig.etcdController":                  "seed/system",
	"etcdConfig.featureGates":                    "refused",
	"exposureClassHandlers":                      "seed/system and shoot/lifecycle",
	"featureGates":                               "internal/process",
	"leaderElection":                             "internal/process",
	"logFormat":                                  "internal/process",
	"logLevel":                                   "internal/process",
	"logging":                                    "refused, if it is enabled",
	"monitoring.shoot.enabled":                   "nothing: shoots have no monitoring",
	"monitoring.shoot.externalLabels":            "refused",
	"monitoring.shoot.remoteWrite":               "refused",
	"nodeToleration":                             "seed/system, for gardener-resource-manager",
	"resources":                                  "seed/system",
	"seedConfig":                                 "seed/registration",
	"server":                                     "internal/process",
	"sni":                                        "seed/system, but another namespace or serviceName is refused",
}

// TestReaders finds fields of the configuration that readers does not know.
func TestReaders(t *testing.T) {
	config := reflect.TypeFor[Config]()
	used, missing := map[string]bool{}, []string{}
	var walk func(reflect.Type, string)
	walk = func(of reflect.Type, path string) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if _, known := readers[path]; known {
			used[path] = true
			return
		}
		if of.Kind() != reflect.Struct || of.PkgPath() != config.PkgPath() {
			missing = append(missing, path)
			return
		}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "" {
				walk(of.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))
			}
		}
	}
	walk(config, "")
	if len(missing) > 0 {
		t.Errorf("these fields have no reader: %v", missing)
	}
	for _, path := range slices.Sorted(maps.Keys(readers)) {
		if !used[path] {
			t.Errorf("there is no field %s", path)
		}
	}
}
