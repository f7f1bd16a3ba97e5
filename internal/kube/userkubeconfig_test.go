package kube

import (
	"strings"
	"testing"
)

func TestConfigOfUser(t *testing.T) {
	kubeconfig := func(user, cluster string) string {
		return `{kind: Config, apiVersion: v1, current-context: a, contexts: [{name: a, context: {user: a, cluster: a}}], users: [{name: a, user: ` + user +
			`}], clusters: [{name: a, cluster: ` + cluster + `}]}`
	}
	for name, tc := range map[string]struct{ content, want string }{
		"a token":          {kubeconfig("{token: t}", "{server: https://a}"), ""},
		"a command":        {kubeconfig("{exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}", "{server: https://a}"), "not executed"},
		"a plugin":         {kubeconfig("{auth-provider: {name: x}}", "{server: https://a}"), "not executed"},
		"a token file":     {kubeconfig("{tokenFile: /t}", "{server: https://a}"), "not read"},
		"a certificate":    {kubeconfig("{client-certificate: /t, client-key: /t}", "{server: https://a}"), "not read"},
		"a CA":             {kubeconfig("{token: t}", "{server: https://a, certificate-authority: /t}"), "not read"},
		"no server":        {kubeconfig("{token: t}", "{}"), "no cluster"},
		"nothing":          {"", "no cluster"},
		"not a kubeconfig": {"~secret~: [", "not valid"},
		"plain text":       {"~secret~", "not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ConfigOfUser([]byte(tc.content))
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")):
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}
