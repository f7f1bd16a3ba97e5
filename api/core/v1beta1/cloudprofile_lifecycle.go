package v1beta1

import "time"

// ClassificationAt returns the classification of a version at a time. Without a lifecycle it is the field classification, which
// may be empty, until the expiration date.
func (v ExpirableVersion) ClassificationAt(now time.Time) VersionClassification {
	if len(v.Lifecycle) == 0 {
		if v.ExpirationDate != nil && !v.ExpirationDate.After(now) {
			return ClassificationExpired
		}
		if v.Classification == nil {
			return ""
		}
		return *v.Classification
	}
	classification := ClassificationUnavailable
	for _, stage := range v.Lifecycle {
		if stage.StartTime == nil || !stage.StartTime.After(now) {
			classification = stage.Classification
		}
	}
	return classification
}
