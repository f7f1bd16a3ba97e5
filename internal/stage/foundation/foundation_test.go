package foundation

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/pkg/flow"
)

// Extensions reach the infrastructure when its credentials are complete: those of a WorkloadIdentity when its token was requested.
func TestCredentialsOfTheInfrastructure(t *testing.T) {
	for name, tc := range map[string]struct {
		credential *usercredential.Credential
		want       []string
	}{
		"none":             {},
		"Secret":           {credential: &usercredential.Credential{Kind: usercredential.Secret, Data: map[string][]byte{"k": []byte("v")}}, want: []string{"cloudprovider"}},
		"WorkloadIdentity": {credential: &usercredential.Credential{Kind: usercredential.WorkloadIdentity}, want: []string{"cloudprovider", "cloudprovider-token"}},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := stagetest.New(t)
			in := Inputs{Run: clusters.Run(), Shoot: &corev1beta1.Shoot{}, Credentials: credentials.New(credentials.Values{}), CloudProvider: tc.credential}
			tasks := Tasks(in)
			var ids []string
			for _, id := range []string{"cloudprovider", "cloudprovider-token"} {
				if slices.ContainsFunc(tasks, func(task flow.Task) bool { return task.ID == id }) {
					ids = append(ids, id)
				}
			}
			if diff := cmp.Diff(tc.want, ids); diff != "" {
				t.Fatalf("tasks (-want +got):\n%s", diff)
			}
			if tc.credential == nil {
				return
			}
			secret := &corev1.Secret{}
			for range 2 { // the second time, it exists already
				if err := stagetest.RunTask(t.Context(), t, tasks, "cloudprovider"); err != nil {
					t.Fatal(err)
				}
				if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "cloudprovider"}, secret); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.credential.Data, secret.Data); diff != "" {
					t.Errorf("Secret (-want +got):\n%s", diff)
				}
			}
			if len(tc.want) < 2 {
				return
			}
			if err := stagetest.RunTaskUntilIdle(t, tasks, "cloudprovider-token"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("without a token: %v", err)
			}
			secret.Data = map[string][]byte{"token": []byte("t")}
			if err := clusters.Seed.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			if err := stagetest.RunTask(t.Context(), t, tasks, "cloudprovider-token"); err != nil {
				t.Errorf("with a token: %v", err)
			}
		})
	}
}
