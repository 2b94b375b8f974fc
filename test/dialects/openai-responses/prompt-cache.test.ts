/**
 * Goal: prompt_cache_retention and prompt_cache_options go only to models that know them.
 * Method: one request for models that do, that do not, and that nothing is known of.
 */
import t from 'tap'
import type { ModelFacts } from '../../../src/chat/model.js'
import { encode } from './driver.js'

const UNLISTED: ModelFacts = { id: 'gpt-test', family: 'openai', createdAtSeconds: 0 }
const rest = { prompt_cache_retention: '24h', prompt_cache_options: { mode: 'implicit' } }

function sent(facts: Partial<ModelFacts>): string[] {
  const { body, lost } = encode({ rest }, { ...UNLISTED, ...facts })
  t.same(lost, [], 'neither changes the answer')
  return Object.keys(rest).filter((key) => key in body)
}

void t.test('each as the catalogue says', (t) => {
  const listed = { endpoints: ['responses' as const] }
  t.same(sent({ ...listed, promptCacheBreakpoints: true, promptCacheRetention: false }), [
    'prompt_cache_options',
  ])
  t.same(sent(listed), ['prompt_cache_retention'])
  t.same(sent({}), ['prompt_cache_retention', 'prompt_cache_options'])
  t.end()
})
