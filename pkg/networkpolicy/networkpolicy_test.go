package networkpolicy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAnnotations(t *testing.T) {
	const prefix, port = "networking.resources.gardener.cloud/", `[{"protocol":"TCP","port":10250}]`
	if diff := cmp.Diff(map[string]string{
		prefix + "from-all-webhook-targets-allowed-ports": port, prefix + "from-world-to-ports": port, prefix + "pod-label-selector-namespace-alias": "extensions",
		prefix + "namespace-selectors": `[{"matchLabels":{"kubernetes.io/metadata.name":"garden"}},{"matchLabels":{"gardener.cloud/role":"shoot"}}]`,
	}, WebhookTarget(10250)); diff != "" {
		t.Errorf("WebhookTarget() (-want +got):\n%s", diff)
	}
	separate := SeparateWebhookTargets(10250, 10251)
	if shoots, world := separate[prefix+"from-all-webhook-targets-allowed-ports"], separate[prefix+"from-world-to-ports"]; len(separate) != 4 ||
		shoots != `[{"protocol":"TCP","port":10251}]` || world != port {
		t.Errorf("SeparateWebhookTargets() = %v", separate)
	}
	if diff := cmp.Diff(map[string]string{prefix + "from-all-scrape-targets-allowed-ports": port}, ScrapeTarget(10250)); diff != "" {
		t.Errorf("ScrapeTarget() (-want +got):\n%s", diff)
	}
	if got := LabelFor("all-shoots", "kube-apiserver", 443); got != prefix+"to-all-shoots-kube-apiserver-tcp-443" {
		t.Errorf("LabelFor() = %q", got)
	}
}
