/**
 * Goal: a request to OpenAI is sent to chat completions if the model supports it there, and otherwise to
 * Responses.
 * Method: the rule for invented facts, then for every model of the shipped catalogue.
 */
import t from 'tap'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { ReasoningEffort } from '../../../src/formats/chat/request.js'
import { factsFor } from '../../../src/config/catalogue.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { endpointReason, openAiEndpoint } from '../../../src/gateway/upstreams/choose-openai-endpoint.js'

const TOOLS = [{ name: 'look' }]
const BOTH: Partial<ModelFacts> = { endpoints: ['chat', 'responses'] }
const TORN: Partial<ModelFacts> = { ...BOTH, chatToolsWithReasoning: false }

function facts(more: Partial<ModelFacts>): ModelFacts {
  return { id: 'm', family: 'openai', createdAtSeconds: 0, ...more }
}

function chosen(more: Partial<ModelFacts>, tools = TOOLS, effort?: ReasoningEffort): string {
  const request = effort === undefined ? { tools } : { tools, reasoningEffort: effort }
  return openAiEndpoint(request, facts(more))
}

void t.test('the rule', (t) => {
  t.equal(chosen({}), 'openai-chat', 'nothing is known')
  t.equal(chosen({ endpoints: ['chat'], chatToolsWithReasoning: false }), 'openai-chat')
  t.equal(chosen({ endpoints: ['responses'] }), 'openai-responses')
  t.equal(chosen({ endpoints: ['responses'] }, []), 'openai-responses')
  t.equal(chosen(BOTH), 'openai-chat')
  t.equal(chosen({ ...BOTH, chatToolsWithReasoning: true }), 'openai-chat')
  t.equal(chosen(TORN), 'openai-responses')
  t.equal(chosen(TORN, []), 'openai-chat', 'without tools')
  t.equal(chosen(TORN, TOOLS, 'low'), 'openai-responses')
  t.equal(chosen(TORN, TOOLS, 'none'), 'openai-chat', 'reasoning is off')
  const never = { ...TORN, reasoningEfforts: ['low', 'high'] }
  t.equal(chosen(never, TOOLS, 'none'), 'openai-responses', 'reasoning cannot be turned off')
  t.end()
})

void t.test('the shipped catalogue', (t) => {
  const loaded = loadConfig('config/gateway.yaml', {})
  if (!loaded.ok) throw new Error('the shipped configuration is not good')
  const { catalogue } = loaded
  const where = (model: string, tools = TOOLS): string =>
    openAiEndpoint({ tools }, factsFor(catalogue, model))
  for (const model of ['gpt-5.5-pro', 'gpt-5-pro', 'gpt-5.3-codex', 'o3-pro']) {
    t.equal(where(model, []), 'openai-responses', model)
    t.match(endpointReason(factsFor(catalogue, model)), 'no chat endpoint')
  }
  for (const model of ['gpt-6-astra', 'gpt-6.1-sol', 'gpt-5.6-luna', 'gpt-6-sol-2026-10-01']) {
    t.equal(where(model), 'openai-responses', model)
    t.equal(where(model, []), 'openai-chat', model)
  }
  for (const model of ['gpt-4o', 'gpt-5.4', 'gpt-5-mini', 'gpt-audio', 'gpt-9', 'llama-4']) {
    t.equal(where(model), 'openai-chat', model)
  }
  t.match(endpointReason(factsFor(catalogue, 'gpt-6-astra')), /while it reasons$/)
  t.match(endpointReason(factsFor(catalogue, 'gpt-6-luna')), /reasoning_effort none/)
  t.match(endpointReason(factsFor(catalogue, 'gpt-5.4')), 'supports all features')
  t.match(endpointReason(factsFor(catalogue, 'gpt-audio')), 'no other endpoint')
  t.match(endpointReason(factsFor(catalogue, 'llama-4')), 'not known')
  t.end()
})
