package startup

import (
	"testing"

	"gardener.cloud/gardener/internal/backuprestore/datadir"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		facts Facts
		want  Action
	}{
		"valid data":                             {Facts{Data: datadir.Valid, Revision: 9, Bootstrap: true}, Start},
		"valid data ahead of the backup":         {Facts{Data: datadir.Valid, Revision: 9, BackupRevision: 8, Bootstrap: true}, Start},
		"data that the backup is ahead of":       {Facts{Data: datadir.Valid, Revision: 7, BackupRevision: 8, Bootstrap: true}, Restore},
		"old data of one of several":             {Facts{Data: datadir.Valid, Revision: 7, BackupRevision: 8, OthersHaveData: true}, Start},
		"old data of one of several, new Leases": {Facts{Data: datadir.Valid, Revision: 7, Members: 3, BackupRevision: 8, Bootstrap: true}, Start},
		"old data of the only member":            {Facts{Data: datadir.Valid, Revision: 7, Members: 1, BackupRevision: 8, Bootstrap: true}, Restore},
		"no data, no backup":                     {Facts{Data: datadir.Missing, Bootstrap: true}, New},
		"no data, a backup":                      {Facts{Data: datadir.Missing, Bootstrap: true, BackupRevision: 8}, Restore},
		"damaged data, a backup":                 {Facts{Data: datadir.Corrupt, Bootstrap: true, BackupRevision: 8}, Restore},
		"damaged data, no backup":                {Facts{Data: datadir.Corrupt, Bootstrap: true}, New},
		"the first lost what others have":        {Facts{Data: datadir.Missing, Bootstrap: true, BackupRevision: 8, OthersHaveData: true}, Join},
		"another lost what others have":          {Facts{Data: datadir.Corrupt, OthersHaveData: true}, Join},
		"another, before the first":              {Facts{Data: datadir.Missing}, Wait},
		"another, when all is lost":              {Facts{Data: datadir.Missing, BackupRevision: 8}, Wait},
		"another, damaged, before the first":     {Facts{Data: datadir.Corrupt, BackupRevision: 8}, Wait},
		"another with data, others have none":    {Facts{Data: datadir.Valid, Revision: 9, BackupRevision: 8}, Start},
		"a bootstrap member with data of many":   {Facts{Data: datadir.Valid, Revision: 9, Bootstrap: true, OthersHaveData: true}, Start},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.facts); got != tc.want {
				t.Errorf("Decide(%+v) = %s, want %s", tc.facts, got, tc.want)
			}
		})
	}
}
