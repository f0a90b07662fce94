"""What schemathesis cannot know of the document by itself."""
import json
import os
import time
import urllib.request

import schemathesis

# Only some models take these fields. Others ignore them, whatever their value.
MODEL_FIELDS = ("repetition_penalty", "thinking_enabled", "web_search")
MODEL_OF_METHOD = {
    ":embedContent": "sandbox/embedding",
    ":batchEmbedContents": "sandbox/embedding",
    ":predict": "sandbox/image",
    ":predictLongRunning": "sandbox/text-to-video",
}
QUICK = "@sandbox quick=1\nA boat"


def token_of(path):
    """The admin API takes admin tokens, the others API tokens."""
    return os.environ["GATEHOUSE_ADMIN_TOKEN" if path.startswith("/admin/") else "GATEHOUSE_BOOTSTRAP_TOKEN"]


def send(method, path, body=None):
    """A request to the gateway, outside of the tests."""
    request = urllib.request.Request(
        os.environ["GATEHOUSE_URL"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "authorization": f"Bearer {token_of(path)}",
            "content-type": "application/json",
        },
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def uploaded_file(text):
    """A file of one line for a batch."""
    boundary = "openapi-check"
    parts = [
        ('name="purpose"', "batch"),
        ('name="file"; filename="lines.jsonl"', text),
    ]
    body = "".join(f"--{boundary}\r\nContent-Disposition: form-data; {name}\r\n\r\n{value}\r\n" for name, value in parts)
    request = urllib.request.Request(
        os.environ["GATEHOUSE_URL"] + "/v1/files",
        method="POST",
        data=f"{body}--{boundary}--\r\n".encode(),
        headers={
            "authorization": f"Bearer {token_of('/v1/files')}",
            "content-type": f"multipart/form-data; boundary={boundary}",
        },
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["id"]


def ended_message_batch():
    params = {"model": "sandbox/compact", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    batch = send("POST", "/v1/messages/batches", {"requests": [{"custom_id": "one", "params": params}]})
    for _ in range(600):
        if batch["processing_status"] == "ended":
            return batch["id"]
        time.sleep(0.1)
        batch = send("GET", f"/v1/messages/batches/{batch['id']}")
    raise RuntimeError(f"not ended: {batch}")


def finished_task(path, body):
    task_id = send("POST", path, body)["data"]["task_id"]
    # Each response waits for the next state, and there are six.
    for _ in range(10):
        task = send("GET", f"{path}/{task_id}?wait=20")["data"]
        if task["status"] == "SUCCESS":
            return task_id
    raise RuntimeError(f"{path}: {task}")


def ids():
    """What there is to read, by the beginning of the path or the name of the parameter: an invented id is a 404, which shows little."""
    video = finished_task("/v1/video/generations", {"model": "sandbox/text-to-video", "prompt": QUICK})
    image = finished_task("/v1/images/generations", {"model": "sandbox/image", "prompt": "A boat", "async": True})
    solid = finished_task("/v1/3d/generations", {"model": "sandbox/text-to-3d", "prompt": QUICK})
    message = {"type": "message", "role": "user", "content": "Hi"}
    conversation = send("POST", "/v1/conversations", {"items": [message]})["id"]
    # Of its own: into the other one, generated requests put items whose ids are any text, as "0".
    read = send("POST", "/v1/conversations", {"items": [message]})["id"]
    [item] = send("GET", f"/v1/conversations/{read}/items")["data"]
    response = send("POST", "/v1/responses", {"model": "sandbox/general", "input": "Hi", "background": True})
    project = send("POST", "/admin/v1/projects", {"name": f"openapi-{os.getpid()}"})["project_id"]
    token = send("POST", "/admin/v1/tokens", {"name": "openapi", "project_id": project})["token_id"]
    body = {"model": "sandbox/compact", "messages": [{"role": "user", "content": "Hi"}]}
    line = {"custom_id": "one", "method": "POST", "url": "/v1/chat/completions", "body": body}
    file = uploaded_file(json.dumps(line))
    order = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    batch = send("POST", "/v1/batches", order)["id"]
    admin = send("POST", "/admin/v1/admin-tokens", {"name": "openapi", "role": "viewer"})["admin_token_id"]
    return {
        "/admin/v1/projects/": project,
        "/admin/v1/tokens/": token,
        "/admin/v1/admin-tokens/": admin,
        "item_id": item["id"],
        "/v1/conversations/{conversation_id}/items/{item_id}": read,
        "/v1/conversations/": conversation,
        "/v1/video/generations/": video,
        "/v1/videos/": video,
        "/v1/images/generations/": image,
        "/v1/3d/generations/": solid,
        "/v1/responses/": response["id"],
        "/v1/files/": file,
        "/v1/batches/": batch,
        "/v1/messages/batches/": ended_message_batch(),
        "/mcp/": "sandbox",
        "/.well-known/oauth-protected-resource/mcp/": "sandbox",
        # No provider of this gateway has paths by name: each is a 404.
        "/passthrough/": "sandbox",
        "/v1/models/": "sandbox/general",
        "/v1beta/models/": "sandbox/general",
        "/v1beta/files/": f"{video.encode().hex()}x0",
        "task_id of an operation": video,
    }


@schemathesis.hook
def before_load_schema(context, raw_schema):
    components = raw_schema["components"]["schemas"]
    for field in MODEL_FIELDS:
        components["ChatRequest"]["properties"].pop(field)
    known = ids()
    for path, operations in raw_schema["paths"].items():
        for method, operation in operations.items():
            describe_stream(operation)
            name_model(operation, components)
            # What is deleted is needed later.
            if method != "delete":
                name_resource(path, operation, known)


def describe_stream(operation):
    """Here a stream is text. Schemathesis reads it as OpenAPI 3.2 does: the schema is that of one event."""
    stream = operation["responses"]["200"].get("content", {}).get("text/event-stream")
    if stream:
        stream["schema"] = {"type": "object", "properties": {"data": stream["schema"]}, "required": ["data"]}


def name_model(operation, components):
    """The model of the example: a request for any other name is a 404."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    model = content.get("example", {}).get("model")
    if model is not None:
        component = components[content["schema"]["$ref"].rsplit("/", 1)[-1]]
        # The playground takes the body of any path, and describes none.
        component.setdefault("properties", {}).setdefault("model", {"type": "string"})["enum"] = [model]


def name_resource(path, operation, known):
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "path":
            found = [one for prefix, one in known.items() if path.startswith(prefix)]
            # What the admin API lists may not be there.
            if not found and path.startswith("/admin/"):
                continue
            of_path = found[0]
            value = next((model for method, model in MODEL_OF_METHOD.items() if path.endswith(method)), None)
            if value is None and "/operations/" in path:
                value = known["task_id of an operation"] if parameter["name"] == "task_id" else "sandbox/text-to-video"
            parameter["schema"] = {"enum": [value or known.get(parameter["name"], of_path)]}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Scenarios need requests that succeed. Other phases vary the bodies."""
    body = case.operation.definition.raw.get("requestBody")
    if body is None or case.meta is None or case.meta.phase.name.value != "stateful":
        return
    example = body["content"].get("application/json", {}).get("example")
    if example is None:  # a form
        return
    example = dict(example)
    if case.operation.path in ("/v1/video/generations", "/v1/videos", "/v1/3d/generations"):
        example["prompt"] = QUICK
    if case.operation.path.endswith(":predictLongRunning"):
        example["instances"] = [{"prompt": QUICK}]
    if case.operation.path == "/v1/images/generations":
        example["async"] = True
    if case.operation.path == "/v1/responses":
        example["background"] = True
    case.body = example
    case.media_type = "application/json"
