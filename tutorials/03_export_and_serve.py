"""Export a model for prediction, and serve it.

Training and serving are two programs: the exported one holds what computes the prediction and nothing
else. The directory has Paddle's own format: Paddle 1.8 serves it as well. Files go to ``tutorials/out/``.
To try the model in a browser afterwards: ``python -m paddlelike serve tutorials/out/export/model``.
"""

# %% Train a small classifier on the digits that scikit-learn ships.
import http.server
import json
import threading
import urllib.request
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import paddlelike as fluid

OUT = Path(__file__).parent / "out" / "export"

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype("float32")
labels = labels.astype("int64").reshape(-1, 1)

main, startup = fluid.Program(), fluid.Program()
main.random_seed = startup.random_seed = 5
with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    image = fluid.data(name="image", shape=[None, 64], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    hidden = fluid.layers.fc(image, size=64, act="relu")
    hidden = fluid.layers.dropout(hidden, dropout_prob=0.3)
    prediction = fluid.layers.fc(hidden, size=10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    fluid.optimizer.Adam(learning_rate=0.01).minimize(loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
rng = np.random.RandomState(0)
for step in range(300):
    rows = rng.randint(0, 1500, 64)
    (value,) = exe.run(main, feed={"image": images[rows], "label": labels[rows]}, fetch_list=[loss])
    if step % 100 == 99:
        print(f"step {step + 1}: loss {value.item():.4f}")

# %% Export: pruned to what the prediction needs, in test mode, with feed and fetch operators.
fluid.io.save_inference_model(str(OUT / "model"), ["image"], [prediction], exe, main_program=main)
# The same in two files instead of one for each variable:
fluid.io.save_inference_model(
    str(OUT / "packed"), ["image"], [prediction], exe, main, model_filename="model", params_filename="params"
)

# %% Load it where nothing of the training is known: another scope, usually another process.
scope = fluid.Scope()
with fluid.scope_guard(scope):
    program, feeds, fetches = fluid.io.load_inference_model(str(OUT / "model"), exe)
print("feeds", feeds, "fetches", [v.name for v in fetches])
kinds = [op.type for op in program.global_block().ops]
print("operators:", ", ".join(kinds))
assert feeds == ["image"]
assert "adam" not in kinds
assert not any("moment" in name for name in scope.local_var_names())


# %% A server: a batch of images in, probabilities out. Each request is one run of the program.
lock = threading.Lock()


class Predictor(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        batch = np.array(json.loads(body), dtype="float32")
        with lock:
            (result,) = exe.run(program, feed={"image": batch}, fetch_list=fetches, scope=scope)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(result.tolist()).encode())

    def log_message(self, *args):
        """Quiet."""


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Predictor)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}/"
with urllib.request.urlopen(url, data=json.dumps(images[1500:].tolist()).encode()) as answer:
    served = np.array(json.load(answer), dtype="float32")
server.shutdown()
server.server_close()

hits = float(np.mean(served.argmax(1) == labels[1500:, 0]))
print(f"served {len(served)} images never seen in training, {hits:.1%} right")
assert hits > 0.85

# %% What was served is what the training program computes in test mode.
test_program = main.clone(for_test=True)
expected = exe.run(
    test_program, feed={"image": images[1500:], "label": labels[1500:]}, fetch_list=[prediction]
)
np.testing.assert_allclose(served, expected[0], rtol=1e-6, atol=1e-7)
with fluid.scope_guard(fluid.Scope()):
    program, feeds, fetches = fluid.io.load_inference_model(str(OUT / "packed"), exe, "model", "params")
    packed = exe.run(program, feed={"image": images[1500:]}, fetch_list=fetches)
np.testing.assert_array_equal(packed[0], expected[0])

# %% The model that was exported, as a picture.
test_program.plot(OUT / "model.svg")

# %% [markdown]
# ![Operators of the exported model are boxes, its variables ellipses](out/export/model.svg)
