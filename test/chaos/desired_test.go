package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

func TestServerMatches(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"as desired":     {args: []string{"--a=b", "--max-requests-inflight=123"}},
		"an older value": {args: []string{"--max-requests-inflight=400"}, want: `kube-apiserver has flags ["--max-requests-inflight=400"], want --max-requests-inflight=123`},
		"nothing":        {args: []string{"--max-requests-inflight-x"}, want: `kube-apiserver has flags [], want --max-requests-inflight=123`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1beta1.ShootSpec{}
			alter(spec, 123, 2)
			server := &appsv1.Deployment{}
			server.Spec.Template.Spec.Containers = []corev1.Container{{Args: tc.args}}
			expectError(t, serverMatches(spec, server), tc.want)
		})
	}
	if err := serverMatches(&corev1beta1.ShootSpec{}, &appsv1.Deployment{}); err != nil {
		t.Errorf("nothing is desired: %v", err)
	}
}

func TestNodesMatch(t *testing.T) {
	node := func(name, pool string, ready corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{}
		n.Name, n.Labels = name, map[string]string{constants.WorkerPool: pool}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Message: "no network"}}
		return n
	}
	spec := &corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "a", Minimum: 1, Maximum: 1}, {Name: "b", Minimum: 1, Maximum: 3}}}}
	alter(spec, 1, 2)
	if first := spec.Provider.Workers[0]; first.Minimum != 2 || first.Maximum != 2 {
		t.Errorf("the first pool is %+v", first)
	}
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		want  string
	}{
		"as desired": {nodes: []*corev1.Node{node("1", "a", "True"), node("2", "b", "True"), node("3", "a", "True")}},
		"one too few": {
			nodes: []*corev1.Node{node("1", "a", "True"), node("2", "b", "True")}, want: `pool "a" has 1 nodes, want 2`,
		},
		"one too many": {
			nodes: []*corev1.Node{node("1", "a", "True"), node("2", "b", "True"), node("3", "a", "True"), node("4", "b", "True")},
			want:  `pool "b" has 2 nodes, want 1`,
		},
		"one is not ready": {
			nodes: []*corev1.Node{node("1", "a", "True"), node("2", "b", "False"), node("3", "a", "True")}, want: `Node "2" is not ready: no network`,
		},
	} {
		t.Run(name, func(t *testing.T) { expectError(t, nodesMatch(spec.Provider.Workers, tc.nodes), tc.want) })
	}
}

func TestOneHealthySeed(t *testing.T) {
	seed := func(status corev1beta1.ConditionStatus) *corev1beta1.Seed {
		s := &corev1beta1.Seed{}
		s.Name = "local"
		s.Status.Conditions = []corev1beta1.Condition{{Type: "A", Status: "True"}, {Type: "B", Status: status, Message: "ouch"}}
		return s
	}
	for name, tc := range map[string]struct {
		seeds []*corev1beta1.Seed
		want  string
	}{
		"healthy":     {seeds: []*corev1beta1.Seed{seed("True")}},
		"unhealthy":   {seeds: []*corev1beta1.Seed{seed("Unknown")}, want: `seed "local": its condition B is Unknown: ouch`},
		"none":        {want: "there are 0 seeds"},
		"not checked": {seeds: []*corev1beta1.Seed{{}}, want: `seed "": its health has not been checked yet`},
	} {
		t.Run(name, func(t *testing.T) { expectError(t, oneHealthySeed(tc.seeds), tc.want) })
	}
}

func expectError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}
