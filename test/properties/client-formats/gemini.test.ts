/**
 * Goal: a Gemini client gets complete and correct replies from every upstream dialect, regardless of chunk
 * boundaries.
 * Method: prefixes, splits and seeded corruptions of every transcript.
 */
import t from 'tap'
import { checkClient } from './client-format.js'

checkClient(t, {
  dialect: 'gemini',
  body: {
    contents: [{ parts: [{ text: 'Hello' }] }],
    generationConfig: { thinkingConfig: { includeThoughts: true } },
  },
  endpoint: { operation: 'chat', model: 'client-model', stream: true },
  claims: (frames) => frames.some((data) => /"(?:finishReason|blockReason)"\s*:/.test(data)),
})
