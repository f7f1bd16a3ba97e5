package nodeproblemdetector

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// maxMessage is how long messages may be in events.
const maxMessage = 1024

// event is one of the Node.
type event struct {
	kind, reason, message string
}

// problem is why a condition is True.
type problem struct {
	reason, message string
}

// availability is whether a source can be read. It is empty as long as that is not known.
type availability string

const (
	readable   availability = "readable"
	unreadable availability = "unreadable"
)

// detector has what was observed. It is not safe for concurrent use.
type detector struct {
	sources  map[source]availability
	problems map[corev1.NodeConditionType]problem
	// times are when something has happened, as often as its threshold, the latest last.
	times   map[corev1.NodeConditionType][]time.Time
	metrics *metrics
}

func newDetector(m *metrics) *detector {
	return &detector{
		sources: map[source]availability{}, problems: map[corev1.NodeConditionType]problem{}, times: map[corev1.NodeConditionType][]time.Time{}, metrics: m,
	}
}

// observation changes what is known, and returns events for it.
type observation func(d *detector, now time.Time) []event

// available says that a source can be read, and that what it has of the past has been observed.
func available(s source) observation {
	return func(d *detector, _ time.Time) []event {
		d.sources[s] = readable
		d.metrics.available(s, true)
		return nil
	}
}

// unavailable says why a source cannot be read.
func unavailable(s source, err error) observation {
	return func(d *detector, _ time.Time) []event {
		before := d.sources[s]
		d.sources[s] = unreadable
		d.metrics.available(s, false)
		if before == unreadable {
			return nil
		}
		var missing []string
		for _, k := range kinds {
			if k.source == s {
				missing = append(missing, string(k.condition))
			}
		}
		return []event{{corev1.EventTypeWarning, sources[s], fmt.Sprintf("The node has no conditions %s: %v", strings.Join(missing, ", "), err)}}
	}
}

// found says that the kernel has reported a problem. A past one was reported before this process started: only the conditions that stay are of interest.
func found(r *rule, message string, past bool) observation {
	return func(d *detector, now time.Time) []event {
		if len(message) > maxMessage {
			message = strings.ToValidUTF8(message[:maxMessage], "")
		}
		if _, known := d.problems[r.condition]; r.condition != "" && !known {
			d.problems[r.condition] = problem{r.reason, message}
		}
		if past {
			return nil
		}
		d.metrics.count(r.reason)
		return append([]event{{corev1.EventTypeWarning, r.reason, message}}, d.happened(r.reason, now)...)
	}
}

// started says that systemd has started a unit.
func started(unit string) observation {
	return func(d *detector, now time.Time) []event { return d.happened(unit, now) }
}

// happened counts for the condition of a frequency, if there is one, and returns an event when it becomes True.
func (d *detector) happened(of string, now time.Time) []event {
	for _, k := range kinds {
		if k.frequent == nil || k.frequent.of != of {
			continue
		}
		before := d.often(k, now)
		d.times[k.condition] = append(d.times[k.condition], now)
		if more := len(d.times[k.condition]) - k.frequent.threshold; more > 0 {
			d.times[k.condition] = d.times[k.condition][more:]
		}
		if before == 0 && d.often(k, now) > 0 {
			d.metrics.count(string(k.condition))
			return []event{{corev1.EventTypeWarning, string(k.condition), k.frequent.message}}
		}
	}
	return nil
}

// often returns for how long something will still count as frequent. Zero means that it is not.
func (d *detector) often(k kind, now time.Time) time.Duration {
	times := d.times[k.condition]
	if len(times) < k.frequent.threshold {
		return 0
	}
	return max(0, times[0].Add(window).Sub(now))
}

// known says whether it is known for all sources whether they can be read.
func (d *detector) known() bool { return len(d.sources) == len(sources) }

// conditions returns those of all sources that can be read, without times, and when one of them ends by itself. Zero means never.
func (d *detector) conditions(now time.Time) (list []corev1.NodeCondition, ends time.Duration) {
	for _, k := range kinds {
		if d.sources[k.source] != readable {
			continue
		}
		c := corev1.NodeCondition{Type: k.condition, Status: corev1.ConditionFalse, Reason: k.reason, Message: k.message}
		if p, ok := d.problems[k.condition]; ok {
			c.Status, c.Reason, c.Message = corev1.ConditionTrue, p.reason, p.message
		}
		if k.frequent != nil {
			if left := d.often(k, now); left > 0 {
				c.Status, c.Reason, c.Message = corev1.ConditionTrue, string(k.condition), k.frequent.message
				if ends == 0 || left < ends {
					ends = left
				}
			}
		}
		list = append(list, c)
		d.metrics.condition(c)
	}
	return list, ends
}
