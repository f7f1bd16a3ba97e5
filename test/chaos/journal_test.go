package main

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestJournal(t *testing.T) {
	cluster, connections := fake.NewClientBuilder().Build(), 0
	connect := func(context.Context) (client.WithWatch, error) {
		if connections++; connections == 1 {
			return nil, errors.New("it does not respond")
		}
		return cluster, nil
	}
	j := &journal{}
	j.reset(time.Now())
	for i := range 4 {
		if err := j.write(t.Context(), connect); (err != nil) != (i == 0) {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	if connections != 2 {
		t.Errorf("%d connections, want another one after the failure only", connections)
	}
	if err := cluster.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "journal-2"}}); err != nil {
		t.Fatal(err)
	}
	lost, err := j.lost(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if len(lost) != 1 || lost[0].name != "journal-2" || lost[0].at.IsZero() {
		t.Errorf("lost are %v, want journal-2 with its time", lost)
	}
}

func TestJournalOutage(t *testing.T) {
	begin := time.Unix(0, 0)
	j := &journal{last: begin, longest: 5 * time.Second}
	j.reset(begin.Add(time.Minute))
	if got := j.outage(begin.Add(time.Minute + 3*time.Second)); got != 3*time.Second {
		t.Errorf("without a write in the period, the outage is %s", got)
	}
	j.longest = 4 * time.Second
	if got := j.outage(begin.Add(time.Minute + 3*time.Second)); got != 4*time.Second {
		t.Errorf("the outage is %s, want the longest one of the period", got)
	}
}
