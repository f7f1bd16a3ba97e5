package options

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/webhook"
)

func parse(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	o := New("provider-example", "infrastructure", "worker")
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o, o.Validate()
}

// TestArguments has all arguments of a chart for an extension.
func TestArguments(t *testing.T) {
	o, err := parse(t, "--kubeconfig=k", "--master=m", "--leader-election=false", "--leader-election-id=i", "--leader-election-namespace=n",
		"--metrics-bind-address=:1", "--health-bind-address=:2", "--log-level=debug", "--log-format=text",
		"--controllers=infrastructure,worker", "--disable-controllers=worker", "--disable-webhooks=network",
		"--max-concurrent-reconciles=3", "--infrastructure-max-concurrent-reconciles=7", "--ignore-operation-annotation=true",
		"--extension-classes=shoot,seed", "--heartbeat-namespace=h", "--heartbeat-renew-interval-seconds=10", "--gardener-version=v1", "--self-hosted-shoot-cluster",
		"--webhook-config-server-host=0.0.0.0", "--webhook-config-server-port=10251", "--webhook-config-cert-dir=/tmp", "--webhook-config-mode=service",
		"--webhook-config-url=", "--webhook-config-service-port=444", "--webhook-config-namespace=w", "--webhook-config-owner-namespace=o",
		"--webhook-config-shoot-server-port=10252", "--webhook-config-shoot-service-port=445")
	if err != nil {
		t.Fatal(err)
	}
	want := &Options{
		Name: "provider-example", Cluster: "seed", Kubeconfig: "k", Master: "m", LeaderElectionID: "i", LeaderElectionNamespace: "n", MetricsBindAddress: ":1", HealthBindAddress: ":2",
		LogLevel: "debug", LogFormat: "text", Controllers: []string{"infrastructure", "worker"}, DisableControllers: []string{"worker"},
		Concurrency: map[string]*int{"infrastructure": new(7), "worker": new(0)}, MaxConcurrentReconciles: 3, IgnoreOperationAnnotation: true, ExtensionClasses: []string{"shoot", "seed"},
		HeartbeatNamespace: "h", HeartbeatRenewIntervalSeconds: 10, GardenerVersion: "v1", SelfHostedShootCluster: true,
		WebhookServerHost: "0.0.0.0", WebhookServerPort: 10251, WebhookCertDir: "/tmp", WebhookMode: "service", WebhookServicePort: 444,
		WebhookShootServerPort: 10252, WebhookShootServicePort: 445,
		WebhookNamespace: "w", WebhookOwnerNamespace: "o", DisableWebhooks: []string{"network"},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if !o.Enabled("infrastructure") || o.Enabled("worker") || o.Enabled("network") {
		t.Error("other controllers are enabled than the flags say")
	}
}

func TestConcurrency(t *testing.T) {
	o, err := parse(t, "--max-concurrent-reconciles=3", "--infrastructure-max-concurrent-reconciles=7")
	if err != nil || o.concurrency("infrastructure") != 7 || o.concurrency("worker") != 3 || o.concurrency("other") != 3 {
		t.Errorf("other concurrency than the flags say (%v)", err)
	}
}

func TestValidate(t *testing.T) {
	if _, err := parse(t); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	for argument, want := range map[string]string{
		"--webhook-config-mode=x":                  "--webhook-config-mode=x: must be",
		"--webhook-config-mode=url":                "--webhook-config-url: required",
		"--log-level=x":                            "--log-level=x: must be",
		"--log-format=x":                           "--log-format=x: must be",
		"--heartbeat-renew-interval-seconds=0":     "must be above 0",
		"--extension-classes=x":                    "--extension-classes=x: must be",
		"--worker-max-concurrent-reconciles=-1":    "--worker-max-concurrent-reconciles=-1: must not be negative",
		"--max-concurrent-reconciles=0":            "--max-concurrent-reconciles=0: must be above 0",
		"--disable-controllers=infrastructure-typ": `there is no controller "infrastructure-typ"; there are [infrastructure worker]`,
	} {
		if _, err := parse(t, argument); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", argument, err)
		}
	}
}

func TestWebhooks(t *testing.T) {
	all := webhook.Options{
		Webhooks: []webhook.Webhook{{Name: "controlplane"}, {Name: "network"}},
		Shoots:   &webhook.Shoots{Webhooks: []webhook.Webhook{{Name: "nodes"}}, Selects: func(*extension.Cluster) bool { return true }},
	}
	type result struct {
		Service, URL string
		ByURL        bool
		Webhooks     int
		ShootPorts   string // empty without webhooks for shoots
	}
	for name, tc := range map[string]struct {
		args []string
		want result
	}{
		"by Service":        {nil, result{"gardener-extension-provider-example", "", false, 2, "10251 444"}},
		"by its name":       {[]string{"--webhook-config-mode=url-service"}, result{"gardener-extension-provider-example", "", true, 2, "10251 444"}},
		"by URL":            {[]string{"--webhook-config-mode=url", "--webhook-config-url=10.0.0.1:8443"}, result{"", "10.0.0.1:8443", false, 2, "10251 444"}},
		"by URL, no port":   {[]string{"--webhook-config-mode=url", "--webhook-config-url=example.com"}, result{"", "example.com:443", false, 2, "10251 444"}},
		"some are disabled": {[]string{"--disable-webhooks=network,nodes"}, result{"gardener-extension-provider-example", "", false, 1, ""}},
		"only for shoots":   {[]string{"--disable-webhooks=controlplane,network"}, result{"gardener-extension-provider-example", "", false, 0, "0 0"}},
		"with other ports": {
			[]string{"--webhook-config-shoot-server-port=8444", "--webhook-config-shoot-service-port=8445"},
			result{"gardener-extension-provider-example", "", false, 2, "8444 8445"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(t, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			w := o.webhooks(all)
			got := result{w.Service, w.URL, w.ByURL, len(w.Webhooks), ""}
			if w.Shoots != nil {
				got.ShootPorts = fmt.Sprintf("%d %d", w.Shoots.Port, w.Shoots.ServicePort)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("webhooks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogger(t *testing.T) {
	var out strings.Builder
	o, err := parse(t, "--log-level=error", "--log-format=text")
	if err != nil {
		t.Fatal(err)
	}
	log := o.Logger(&out)
	log.Info("quiet")
	log.Error(nil, "loud")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "msg=loud") {
		t.Errorf("logged:\n%s", got)
	}
}
