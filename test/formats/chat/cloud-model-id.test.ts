/** Goal: ids of Bedrock and Vertex name the vendor's own model; opaque and ordinary ids name none. */
import t from 'tap'
import { cloudModelOf } from '../../../src/formats/chat/cloud-model-id.js'

void t.test('ids of clouds', (t) => {
  const cases: [string, string | null, boolean?, string?][] = [
    ['anthropic.claude-sonnet-4-5-20250929-v1:0', 'claude-sonnet-4-5-20250929'],
    [
      'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
      'claude-sonnet-4-5-20250929',
      true,
      'anthropic.claude-sonnet-4-5-20250929-v1:0',
    ],
    [
      'us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0',
      'claude-sonnet-4-5-20250929',
      true,
      'anthropic.claude-sonnet-4-5-20250929-v1:0',
    ],
    ['apac.anthropic.claude-opus-5', 'claude-opus-5', true, 'anthropic.claude-opus-5'],
    ['global.anthropic.claude-opus-5', 'claude-opus-5', false, 'anthropic.claude-opus-5'],
    ['anthropic.claude-v2:1', 'claude'],
    ['amazon.nova-lite-v1:0', 'nova-lite'],
    ['amazon.nova-pro-v1:0:300k', 'nova-pro'],
    ['openai.gpt-oss-120b-1:0', 'gpt-oss-120b'],
    [
      'arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-opus-5',
      'claude-opus-5',
      false,
      'anthropic.claude-opus-5',
    ],
    [
      'arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.claude-opus-5',
      'claude-opus-5',
      true,
      'anthropic.claude-opus-5',
    ],
    ['arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2', null],
    ['claude-sonnet-4-5@20250929', 'claude-sonnet-4-5-20250929'],
    ['claude-sonnet-4-5@default', 'claude-sonnet-4-5'],
    ['gpt-5.4', null],
    ['us.gpt-5.4', null],
    ['gemini-2.5-pro', null],
    ['x'.repeat(300), null],
  ]
  for (const [id, name, isGeographic = false, foundation = id] of cases) {
    const expected = name === null ? null : { id: name, foundation, isGeographic }
    t.same(cloudModelOf(id), expected, id)
  }
  t.end()
})
