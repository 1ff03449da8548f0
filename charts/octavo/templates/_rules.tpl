{{/*
What the operator does in a namespace of models, one rule per kind. tests/contracts/test_chart.py compares with the verbs
of octavo_operator/kinds.py: not one more, not one less.
*/}}
{{- define "octavo.rules.namespaced" -}}
- apiGroups: [octavo.dev]
  resources: [llmdeployments]
  verbs: [list, watch]
- apiGroups: [octavo.dev]
  resources: [llmdeployments/status]  # nothing else of it is ever written
  verbs: [patch]
- apiGroups: [apps]
  resources: [deployments, controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]  # marked for draining, deleted once drained; made by the Deployment
  verbs: [list, watch, patch, delete]
- apiGroups: [""]
  resources: [services, serviceaccounts, persistentvolumeclaims]  # collected with their owner
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [secrets]  # hub tokens and API keys are read, hashes of keys are written
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
{{- end -}}

{{- define "octavo.rules.cluster" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [list, watch]
{{- end -}}
