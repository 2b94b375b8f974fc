/** What an upstream bills, where it gets something else than the client sent. */
import type { ChatRequest } from './chat/request.js'
import { textsOfTask } from './chat/task.js'
import type { WireFormat } from './dialect.js'
import { judgedByChats } from './moderations/chat.js'
import { isTaskChat, taskInChat } from './task-chats.js'

/** The request that its upstream bills: chats for inputs that chats judge, tasks for chats at endpoints. */
export function billedRequest(request: ChatRequest, wire: WireFormat): ChatRequest {
  if (wire === 'chat-moderations') return judgedByChats(request)
  if (!isTaskChat(wire)) return request
  const task = taskInChat(request, wire)
  // Pictures to change are measured in the messages; sound is measured by the task.
  if (task.kind !== 'transcriptions') return { ...request, task }
  const parts = textsOfTask(task).map((text) => ({ type: 'text' as const, text }))
  return { ...request, messages: [{ role: 'user', index: 0, parts }], task }
}

/** The task by which a request is priced; none for chats, also for those that judge inputs. */
export function pricedTask(request: ChatRequest, wire: WireFormat | null): Pick<ChatRequest, 'task'> {
  if (wire === 'chat-moderations') return {}
  return isTaskChat(wire) ? { task: taskInChat(request, wire) } : request
}
