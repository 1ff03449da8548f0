-- Argo CD's health of an LLMDeployment, from its conditions.
--
-- Install it in the ConfigMap argocd-cm under the key
--   resource.customizations.health.octavo.dev_LLMDeployment
--
-- Healthy      the current spec is served with the wanted replicas
-- Progressing  on its way there
-- Degraded     needs a person (Stalled), or serves with something wrong (Degraded)
-- Suspended    spec.suspend is true

local function condition(kind)
  for _, each in ipairs(obj.status.conditions or {}) do
    if each.type == kind then
      return each
    end
  end
  return { status = "Unknown", message = "" }
end

local function health(status, message)
  return { status = status, message = message or "" }
end

if obj.status == nil or obj.status.conditions == nil then
  return health("Progressing", "The operator has not looked at it yet.")
end

-- Conditions of an older spec say nothing about this one.
if obj.metadata.generation ~= nil and obj.status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", "The operator has not seen the newest spec yet.")
end

local stalled = condition("Stalled")
if stalled.status == "True" then
  return health("Degraded", stalled.message)
end

local suspended = condition("Suspended")
if suspended.status == "True" then
  return health("Suspended", suspended.message)
end

-- A ready resource that still drains pods it no longer wants is healthy.
local ready = condition("Ready")
if ready.status == "True" then
  return health("Healthy", ready.message)
end

local degraded = condition("Degraded")
if degraded.status == "True" then
  return health("Degraded", degraded.message)
end

return health("Progressing", ready.message)
