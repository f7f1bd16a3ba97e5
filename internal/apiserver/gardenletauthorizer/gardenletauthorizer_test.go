package gardenletauthorizer

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	kauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"

	"gardener.cloud/gardener/internal/authorizer/feed"
)

func TestAuthorize(t *testing.T) {
	gardenlet := &user.DefaultInfo{Name: "gardener.cloud:system:seed:a", Groups: []string{"gardener.cloud:system:seeds"}}
	request := func(u user.Info, verb, resource string) kauthorizer.Attributes {
		return kauthorizer.AttributesRecord{User: u, Verb: verb, APIGroup: "core.gardener.cloud", Resource: resource, Name: "a", ResourceRequest: true}
	}
	for name, tc := range map[string]struct {
		request    kauthorizer.Attributes
		incomplete bool
		want       kauthorizer.Decision
		asked      bool
	}{
		"a gardenlet, allowed":                  {request(gardenlet, "create", "seeds"), false, kauthorizer.DecisionAllow, false},
		"a gardenlet, not allowed":              {request(gardenlet, "get", "seeds"), false, kauthorizer.DecisionNoOpinion, true},
		"a gardenlet deletes what is not known": {request(gardenlet, "delete", "backupbuckets"), false, kauthorizer.DecisionNoOpinion, true},
		"a gardenlet, too early":                {request(gardenlet, "create", "seeds"), true, kauthorizer.DecisionNoOpinion, true},
		"a user":                                {request(&user.DefaultInfo{Name: "u"}, "create", "seeds"), false, kauthorizer.DecisionNoOpinion, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			a := New(kauthorizer.AuthorizerFunc(func(context.Context, kauthorizer.Attributes) (kauthorizer.Decision, string, error) {
				asked = true
				return kauthorizer.DecisionNoOpinion, "", nil
			}))
			if !tc.incomplete {
				a.feed.Store(&feed.Feed{})
			}
			decision, _, err := a.Authorize(t.Context(), tc.request)
			if decision != tc.want || err != nil || asked != tc.asked {
				t.Errorf("decision %d, error %v, next authorizer asked: %t; want %d, %t", decision, err, asked, tc.want, tc.asked)
			}
		})
	}
}
