package clusterautoscaler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	statusConfigMap = "cluster-autoscaler-status"
	// lastUpdated on the ConfigMap is when it was written.
	lastUpdated = "cluster-autoscaler.kubernetes.io/last-updated"
)

// clusterStatus is what the key "status" of the ConfigMap has.
type clusterStatus struct {
	Time             string        `json:"time,omitempty"`
	AutoscalerStatus string        `json:"autoscalerStatus"`
	ClusterWide      groupStatus   `json:"clusterWide"`
	NodeGroups       []groupStatus `json:"nodeGroups,omitempty"`
}

type groupStatus struct {
	Name      string       `json:"name,omitempty"`
	Health    healthStatus `json:"health"`
	ScaleUp   upStatus     `json:"scaleUp"`
	ScaleDown downStatus   `json:"scaleDown"`
}

type healthStatus struct {
	Status     string     `json:"status"`
	NodeCounts nodeCounts `json:"nodeCounts"`
	Target     *int       `json:"cloudProviderTarget,omitempty"`
	MinSize    *int       `json:"minSize,omitempty"`
	MaxSize    *int       `json:"maxSize,omitempty"`
}

type nodeCounts struct {
	Registered   registered `json:"registered"`
	Unregistered int        `json:"unregistered"`
}

type registered struct {
	Total      int `json:"total"`
	Ready      int `json:"ready"`
	NotStarted int `json:"notStarted"`
	Unready    int `json:"unready,omitempty"`
}

type upStatus struct {
	Status      string       `json:"status"`
	BackoffInfo *backoffInfo `json:"backoffInfo,omitempty"`
}

type backoffInfo struct {
	ErrorMessage string `json:"errorMessage"`
}

type downStatus struct {
	Status     string `json:"status"`
	Candidates int    `json:"candidates,omitempty"`
}

// statusOf describes the groups.
func (s *Scaler) statusOf(st *state, healthy bool) clusterStatus {
	out := clusterStatus{AutoscalerStatus: "Running"}
	wide := &out.ClusterWide
	wide.Health.Status, wide.ScaleUp.Status, wide.ScaleDown.Status = "Healthy", "NoActivity", "NoCandidates"
	if !healthy {
		wide.Health.Status = "Unhealthy"
	}
	for _, g := range st.groups {
		gs := groupStatus{
			Name: g.Name,
			Health: healthStatus{Status: "Healthy", Target: &g.Target, MinSize: &g.Min, MaxSize: &g.Max, NodeCounts: nodeCounts{
				Registered: registered{Total: g.registered, Ready: g.readyNodes, NotStarted: g.starting, Unready: g.unready},
			}},
			ScaleUp: upStatus{Status: "NoActivity"}, ScaleDown: downStatus{Status: "NoCandidates"},
		}
		for _, m := range g.machines {
			if m.node == nil && !m.going {
				gs.Health.NodeCounts.Unregistered++
			}
		}
		if g.Upcoming > 0 {
			gs.ScaleUp.Status, wide.ScaleUp.Status = "InProgress", "InProgress"
		}
		if until, reason := s.backoff.Resting(g.Name, st.now); !until.IsZero() {
			gs.Health.Status = "Unhealthy"
			gs.ScaleUp = upStatus{Status: "Backoff", BackoffInfo: &backoffInfo{ErrorMessage: reason}}
		}
		for name := range s.since {
			if st.groupOf[name] == g {
				gs.ScaleDown.Candidates++
				gs.ScaleDown.Status = "CandidatesPresent"
			}
		}
		wide.ScaleDown.Candidates += gs.ScaleDown.Candidates
		if wide.ScaleDown.Candidates > 0 {
			wide.ScaleDown.Status = "CandidatesPresent"
		}
		counts := &wide.Health.NodeCounts
		counts.Unregistered += gs.Health.NodeCounts.Unregistered
		counts.Registered.Total += g.registered
		counts.Registered.Ready += g.readyNodes
		counts.Registered.NotStarted += g.starting
		counts.Registered.Unready += g.unready
		out.NodeGroups = append(out.NodeGroups, gs)
	}
	return out
}

// writeStatus writes the ConfigMap for users, if it says something else than before.
func (s *Scaler) writeStatus(ctx context.Context, st *state, healthy bool) error {
	if !s.options.writeStatus {
		return nil
	}
	status := s.statusOf(st, healthy)
	text, err := yaml.Marshal(status)
	if err != nil {
		return err
	}
	if string(text) == s.status {
		return nil
	}
	status.Time = st.now.UTC().Format(time.RFC3339)
	dated, err := yaml.Marshal(status)
	if err != nil {
		return err
	}
	maps := s.shoot.CoreV1().ConfigMaps(s.options.Namespace)
	object, err := maps.Get(ctx, statusConfigMap, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		object, err = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.options.Namespace, Name: statusConfigMap}}, nil
	}
	if err == nil {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, lastUpdated, status.Time)
		object.Data = map[string]string{"status": string(dated)}
		if missing {
			_, err = maps.Create(ctx, object, metav1.CreateOptions{})
		} else {
			_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %q: %w", statusConfigMap, err)
	}
	s.status = string(text)
	return nil
}
