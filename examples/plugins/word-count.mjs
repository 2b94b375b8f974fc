/**
 * An observer that logs how many words and calls each reply has:
 *
 *   plugins: [examples/plugins/word-count.mjs]
 */
import { definePlugin } from 'sluice/pipeline'

/** Counts of the replies that are not complete, by request. */
const counts = new Map()

export default definePlugin({
  api: 1,
  name: 'words',
  observers: {
    count: {
      request(_request, { request_id: id }) {
        counts.set(id, { text: '', calls: 0 })
      },
      event(event, { request_id: id }) {
        const count = counts.get(id)
        if (count === undefined) return
        if (event.type === 'text') count.text += event.text
        if (event.type === 'tool_call') count.calls += 1
      },
      end({ outcome, output_tokens: tokens }, { request_id: id, log }) {
        const { text = '', calls = 0 } = counts.get(id) ?? {}
        counts.delete(id)
        const words = text.split(/\s+/).filter((word) => word !== '').length
        log(`${outcome}: ${words} words, ${calls} calls, ${tokens ?? 0} tokens`)
      },
    },
  },
})
